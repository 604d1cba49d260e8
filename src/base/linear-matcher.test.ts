import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LinearMatcher, whyNotPatterns } from './linear-matcher.ts'

/** All matches in a text, as their values. */
const matches = (expressions: readonly string[], text: string): string[] => {
  const matcher = new LinearMatcher(expressions)
  const found: string[] = []
  for (let from = 0; matcher.find(text, { from, isWhole: true }); from = matcher.end)
    found.push(`${matcher.which}:${text.slice(matcher.start, matcher.end)}`)
  return found
}

/** The first match by trying every start and every end with the engine of JavaScript. */
const naive = (expression: string, text: string): string | undefined => {
  const whole = new RegExp(`^(?:${expression})$`)
  for (let start = 0; start < text.length; start++)
    for (let end = text.length; end > start; end--)
      if (whole.test(text.slice(start, end))) return text.slice(start, end)
  return undefined
}

describe('LinearMatcher', () => {
  it.each([
    ['PRJ-\\d{3,6}', 'see PRJ-12345 and PRJ-1', ['0:PRJ-12345']],
    ['\\bcat\\b', 'concat cat, cats cat', ['0:cat', '0:cat']],
    ['(?i)acme[ -]?corp', 'ACME Corp, acmecorp', ['0:ACME Corp', '0:acmecorp']],
    ['[^a-y\\s]{2}', 'ab zz Z9', ['0:zz', '0:Z9']],
    ['a|ab|abc', 'xabcd', ['0:abc']],
    ['(?:ab){2}c?', 'ababc abab', ['0:ababc', '0:abab']],
    ['A-\\d+', 'A-123, A-', ['0:A-123']],
    ['<.*?>', '<a> <b', ['0:<a>']],
    ['x{2,}', 'x xx xxx', ['0:xx', '0:xxx']],
    ['é{2}\\.', 'éé. é.', ['0:éé.']],
    ['\\x41[\\u0042\\]-]', 'AB A] A-', ['0:AB', '0:A]', '0:A-']],
  ])('%s in "%s"', (expression, text, expected) => {
    expect(matches([expression], text)).toEqual(expected)
  })

  it('takes the match that starts first, of several patterns the longest', () => {
    expect(matches(['bc', 'abcd', 'abc'], 'abcd bc')).toEqual(['1:abcd', '0:bc'])
  })

  it('finds what a naive search finds', () => {
    const atom = fc.constantFrom('a', 'b', '[ab]', '[^a]', '(a|bb)', '(ab|a)', 'c')
    const piece = fc.tuple(atom, fc.constantFrom('', '?', '{2}', '{1,3}', '{0,2}')).map(([a, b]) => a + b)
    const expression = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => `c${pieces.join('')}`)
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 }).map((units) => units.join(''))
    fc.assert(
      fc.property(expression, text, (expr, where) => {
        const first = matches([expr], where)[0]
        expect(first).toBe(naive(expr, where) === undefined ? undefined : `0:${naive(expr, where)}`)
      }),
      { numRuns: 1000 },
    )
  })

  it('says where a text that is not whole is open', () => {
    const matcher = new LinearMatcher(['PRJ-\\d{3,6}', 'x\\b'])
    const openFrom = (text: string): number => {
      matcher.find(text, { from: 0, isWhole: false })
      return matcher.openFrom
    }
    expect(openFrom('see PRJ-12')).toBe(4)
    expect(openFrom('see PRJ-123')).toBe(4)
    expect(openFrom('see PR.')).toBe(7)
    expect(openFrom('axx')).toBe(2)
  })

  it('takes linear time for what makes others take forever', () => {
    const expression = `(${'(a|aa){1,8}'.repeat(4)}){1}b`
    expect(matches([expression], 'a'.repeat(20_000))).toEqual([])
    expect(matches(['(a?){64}a{64}'], 'a'.repeat(64))).toEqual([`0:${'a'.repeat(64)}`])
  })

  it.each([
    ['(a+){1,8}', 'bound repetitions'],
    ['a{2}+', 'repeats a repetition'],
    ['(a', 'has no ")"'],
    ['a)', 'no "(" before'],
    ['[a', 'has no "]"'],
    ['(a)\\1', 'references back'],
    ['(?=a)', 'only "(?:"'],
    ['^a', 'anywhere in a text'],
    ['a?', 'nothing at all'],
    ['*a', 'repeats nothing'],
    ['(a{100}){100}', 'at most'],
    ['a{3,2}', 'counts go up'],
    ['\\q', 'not known'],
    ['[z-a]', 'no range'],
    ['\\u12', 'hex digits'],
    ['a\\', 'nothing behind it'],
    [`${'('.repeat(20)}a${')'.repeat(20)}`, 'nested'],
    ['x'.repeat(1001), '1000 at most'],
    ['(((\\b{128}){128}){128})a', 'too much'],
  ])('refuses %s and says why', (expression, because) => {
    expect(whyNotPatterns([expression])).toContain(because)
  })

  it('takes what can be used', () => {
    expect(whyNotPatterns(['[A-Z]{2}\\d{6}', 'A-\\d+'])).toBeUndefined()
  })
})
