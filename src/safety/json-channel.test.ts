import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutAt } from '../../test/support/cuts.ts'
import { FAKE_PARTS, screeningOf } from '../../test/support/fake-screens.ts'
import { FindingTally } from './findings.ts'
import { JsonChannel } from './json-channel.ts'
import { AnswerPolicy } from './screen-parts.ts'

const VALUES = { '<NAME_01>': 'Ada "the first"\n' }

function through(pieces: readonly string[]) {
  const tally = new FindingTally('output')
  const { terms, restorer } = screeningOf({}, VALUES)
  const policy = new AnswerPolicy(FAKE_PARTS, terms)
  const channel = new JsonChannel(() => policy.makeText(tally, restorer))
  let out = ''
  let kept = ''
  for (const piece of pieces) {
    out += channel.push(piece)
    kept += channel.kept
  }
  out += channel.flush()
  kept += channel.kept
  return { out, kept, found: tally.list.reduce((sum, { count }) => sum + count, 0) }
}

const same = (text: string) => {
  const whole = through([text])
  for (let at = 1; at < text.length; at++) expect(through([text.slice(0, at), text.slice(at)])).toEqual(whole)
  expect(through(text.split(''))).toEqual(whole)
  return whole
}

describe('arguments of a tool call', () => {
  it.each([
    ['{"to":"ada@x.org"}', { to: '<EMAIL>' }, 1],
    ['{"to":"ada\\u0040x.org"}', { to: '<EMAIL>' }, 1],
    ['{"to":"\\u0061da@x\\u002Eorg, ok"}', { to: '<EMAIL>, ok' }, 1],
    ['{"ada@x.org":[true, null, -1.5e3]}', { '<EMAIL>': [true, null, -1500] }, 1],
    ['{"card": 4111111111111111 }', { card: '<CARD>' }, 1],
    ['[4111111111111111,12]', ['<CARD>', 12], 1],
    ['{"a":"x","b":"y"}', { a: 'x', b: 'y' }, 0],
    ['{"smile":"\\ud83d\\ude00 \\ud83d"}', { smile: '\u{1F600} \ud83d' }, 0],
    ['{"for":"\\u003cNAME_01\\u003e"}', { for: VALUES['<NAME_01>'] }, 0],
    ['{"for":"<NAME_01>"}', { for: VALUES['<NAME_01>'] }, 0],
    ['"ada@x.org"', '<EMAIL>', 1],
    ['  {"q":"say \\"hi\\" \\\\ \\/"}\n', { q: 'say "hi" \\ /' }, 0],
  ])('%s stays JSON and hides nothing, whatever the cut', (text, wanted, found) => {
    const { out, kept, found: count } = same(text)
    expect(JSON.parse(out)).toEqual(wanted)
    expect(count).toBe(found)
    expect(JSON.parse(kept)).toBeDefined()
    expect(kept).not.toContain('Ada')
  })

  it.each([
    ['write to ada@x.org now', 'write to <EMAIL> now'],
    ['{write to ada@x.org, now}', '{write to <EMAIL>, now}'],
    ['{"a": ada@x.org and more text than any number has, so that it is no number', '{"a": <EMAIL> and more'],
    ['{"a":"ada@x.org', '{"a":"<EMAIL>'],
    ['{"a":"\\u00zz ada@x.org"}', '{"a":"\\\\u00zz <EMAIL>"}'],
    ['{"a":"b\\', '{"a":"b\\\\'],
  ])('that are no JSON are screened all the same: %s', (text, wanted) => {
    const { out } = same(text)
    expect(out.startsWith(wanted)).toBe(true)
    expect(out).not.toContain('ada@')
  })

  it('are held no longer than a number, an escape or what could become a finding', () => {
    const policy = new AnswerPolicy(FAKE_PARTS, screeningOf().terms)
    const channel = new JsonChannel(() => policy.makeText(new FindingTally('output'), undefined))
    for (const piece of ['{', ' '.repeat(5_000), '"', '\\u004', '1'.repeat(5_000), '":', '12'.repeat(5_000), 'x']) {
      channel.push(piece)
      expect(channel.heldLength).toBeLessThanOrEqual(64)
    }
  })

  it('mean the same before and after, whatever the JSON and the cut', () => {
    const value = fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' })
    const spelling = fc.constantFrom<(json: unknown) => string>(
      (json) => JSON.stringify(json),
      (json) => JSON.stringify(json, null, 1),
      (json) => escaped(JSON.stringify(json)),
    )
    fc.assert(
      fc.property(value, spelling, fc.array(fc.nat(400), { maxLength: 30 }), (json, spell, cuts) => {
        const text = spell(json)
        const { out, found } = through(cutAt(text, cuts))
        fc.pre(found === 0 && !text.includes('<NAME'))
        expect(JSON.parse(out)).toEqual(JSON.parse(text))
        expect(out).toBe(through([text]).out)
      }),
      { numRuns: 100 },
    )
  })
})

/** Every letter of every string as an escape. */
const escaped = (json: string): string =>
  json.replaceAll(/"((?:[^"\\]|\\.)*)"/g, (_, inner: string) => {
    const text = JSON.parse(`"${inner}"`) as string
    return `"${Array.from({ length: text.length }, (__, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
  })
