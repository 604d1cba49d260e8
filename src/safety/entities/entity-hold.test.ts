import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EntityFinder } from './entity-finder.ts'
import { EntityHold } from './entity-hold.ts'

const finder = new EntityFinder({ screens: ['pii', 'secrets'] })
const makeHold = (): EntityHold => new EntityHold(finder, (value, { category }) => `[${category} ${value.length}]`)

/** What a stream lets out, and what it had let out before each piece. */
const stream = (pieces: readonly string[]): { text: string; steps: string[] } => {
  const hold = makeHold()
  const steps: string[] = []
  let text = ''
  for (const piece of pieces) {
    text += hold.push(piece)
    steps.push(text)
  }
  return { text: text + hold.flush(), steps }
}

/** The text as the finder marks it: what a stream must let out. */
const redacted = (text: string): string => {
  let out = ''
  let from = 0
  for (const { category, start, end } of finder.find(text)) {
    out += `${text.slice(from, start)}[${category} ${Math.min(4096, end - start)}]`
    from = end
  }
  return out + text.slice(from)
}

const KEY = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEpAIBAAKCAQEA\n'.repeat(300)}-----END RSA PRIVATE KEY-----`

/** Entities, halves of entities, and what makes rules stumble. */
const SNIPPETS = [
  ' the',
  ' quick',
  ' my number is',
  'password: hunter2!',
  'api_key=',
  'ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5',
  'eyJhbGciOiJIUzI1NiJ9',
  '.eyJzdWIiOiIxMjM0NTY3ODkwIn0.',
  'am9obi5kb2VAZXhhbXBsZS5jb20=',
  '8f7d9a6c5b4e3f2a',
  'jane.doe@example.com',
  'x@',
  '@y.org',
  'a@a@a',
  'me@ex',
  '+1 415-555-0100',
  '(555) 123-4567 ext. 8',
  'x12',
  ' ext',
  '0496 46 46 70',
  'call ',
  'fax',
  ' office',
  '780 6326',
  '4111 1111 1111 1111',
  '4111111111111111',
  '378282246310005',
  'DE89 3704 0044 0532 0130 00',
  'GB29NWBK60161331926819',
  'GB29',
  '078-05-1121',
  '203.0.113.7',
  '1.2.3',
  '2001:db8::1',
  'fe80::',
  ':',
  '::',
  '::ffff:192.0.2.128',
  '12:30:45',
  '2024-01-15',
  ' ',
  '\n',
  ', ',
  '. ',
  '-',
  '-----',
  '-----BEGIN',
  ' PRIVATE KEY-----',
  '\n',
  'MIIEpAIBAAKCAQEA',
  '-----END PRIVATE KEY-----',
  'word',
  'a',
  '1',
  '(',
  '+',
  '/',
  '=',
  'é',
  '４１１１',
  '１',
  '\u200b',
  '\u00ad',
  '𝐣',
  '\ud835',
  '–',
  '"',
  'x'.repeat(50),
  '9'.repeat(30),
  'version ',
  '12345678Z',
  '4111111111111111.0',
  '.0',
  '\\',
  '\\n',
  '\\u0040',
  '\\u00',
  '40',
  'n',
  '\\'.repeat(9),
  'jane\\u0040example.com',
]

const textArbitrary = fc
  .array(fc.oneof(fc.constantFrom(...SNIPPETS), fc.string({ maxLength: 6 })), { maxLength: 14 })
  .map((parts) => parts.join(''))

const cut = (text: string, sizes: readonly number[]): string[] => {
  const pieces: string[] = []
  for (let i = 0, k = 0; i < text.length; k++) {
    const size = sizes.length === 0 ? 1 : sizes[k % sizes.length]!
    pieces.push(text.slice(i, i + size))
    i += size
  }
  return pieces
}

describe('EntityHold', () => {
  it('lets out the same whatever the cut, and nothing of an entity before its time', () => {
    fc.assert(
      fc.property(textArbitrary, fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 5 }), (text, sizes) => {
        const whole = redacted(text)
        const { text: out, steps } = stream(cut(text, sizes))
        expect(out).toBe(whole)
        for (const step of steps) expect(whole.startsWith(step)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('lets out the same with patterns of a tenant', () => {
    const patterns = ['\\bPRJ-\\d{3,6}\\b', '(x|xx){1,20}b', 'w.{1,9}d', '1{2,5}\\b', 'KEY-{1,5}'].map(
      (expression, i) => ({
        name: `own-${i}`,
        expression,
      }),
    )
    const own = new EntityFinder({ screens: ['pii', 'secrets', 'patterns'], patterns })
    const parts = fc.constantFrom('PRJ-123', 'PRJ-', 'xxb', 'word', 'w1d', '11', ' KEY-', ...SNIPPETS)
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 10 }), fc.integer({ min: 1, max: 9 }), (texts, size) => {
        const text = texts.join('')
        const whole = own.find(text).map(({ category, start, end }) => `${category} ${start} ${end}`)
        const seen: string[] = []
        const hold = new EntityHold(own, (_value, { category, start, end }) => {
          seen.push(`${category} ${start} ${end}`)
          return ''
        })
        for (const piece of cut(text, [size])) hold.push(piece)
        hold.flush()
        expect(seen).toEqual(whole)
      }),
      { numRuns: 500 },
    )
  })

  it('sees through the escapes of JSON, code and logs', () => {
    const text = '{"a":"x\\n4111111111111111\\tjane\\u0040example.com\\nGB29NWBK60161331926819"}'
    expect(stream(cut(text, [1])).text).toBe('{"a":"x\\n[card 16]\\t[email 21]\\n[iban 22]"}')
    expect(redacted(text)).toBe(stream(cut(text, [5])).text)
  })

  it('lets words go as soon as they end', () => {
    const hold = makeHold()
    expect(hold.push('The quick')).toBe('The ')
    expect(hold.push(' brown')).toBe('quick ')
    expect(hold.heldLength).toBe(5)
    expect(hold.flush()).toBe('brown')
    expect(hold.heldLength).toBe(0)
  })

  it('holds no more of a long word than an address could need', () => {
    const hold = makeHold()
    const out = hold.push('x'.repeat(5000))
    expect(hold.heldLength).toBeLessThanOrEqual(48)
    expect(out.length + hold.heldLength).toBe(5000)
  })

  it('swallows a private key from its first line on, however long it is', () => {
    const { text, steps } = stream(cut(`Here: ${KEY} Done.`, [3]))
    expect(text).toBe('Here: [private-key 4096] Done.')
    for (const step of steps) expect(step).not.toContain('MII')
    expect(stream(cut(`Here: ${KEY.slice(0, 3000)}`, [7])).text).toBe('Here: [private-key 3000]')
  })

  it('holds little of a private key in memory', () => {
    const hold = makeHold()
    hold.push('-----BEGIN PRIVATE KEY-----\n')
    for (let i = 0; i < 1000; i++) hold.push('MIIEpAIBAAKCAQEA\n')
    expect(hold.heldLength).toBe(0)
  })

  it('tells where the entity is in the whole text', () => {
    const places: number[] = []
    const hold = new EntityHold(finder, (_value, { start, end }) => {
      places.push(start, end)
      return ''
    })
    for (const piece of cut('I am jane@example.com and joe@example.com.', [2])) hold.push(piece)
    hold.flush()
    expect(places).toEqual([5, 21, 26, 41])
  })
})
