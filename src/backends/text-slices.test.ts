import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { realTokenizer } from '../../test/support/engine-tokenizer.ts'
import { RUN_CHARACTERS_MAX, SLICE_CHARACTERS, slicesOf } from './text-slices.ts'
import { encodeWhole, type Tokenizer } from './tokenizer.ts'

let tokenizer: Tokenizer
beforeAll(async () => {
  tokenizer = await realTokenizer()
})

/** Pieces that meet in every combination of letters, digits, marks, blanks, line ends and scripts. */
const PIECES = [
  ['the', 'Water', "don't", "I'LL", 'naïve', 'X', 'él', 'ſ', '1', '2026', '3.14', '½', '٣'],
  [' ', '  ', '\t', '\n', '\r\n', '\n\n', '\u00a0', '\u3000', ',', '. ', '...', '/', '//', '-', '—', '’', "'", "'s"],
  [
    '"',
    '(',
    '});',
    '水',
    '溢洪道',
    '。',
    '「',
    'ダム',
    '댐',
    '🌊',
    '👨‍👩‍👧',
    'e\u0301',
    '\u200d',
    '<|im_end|>',
    '_',
    'a_b',
  ],
].flat()

const anyText = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join(''))

describe('slices of a text', () => {
  it('put together are the text', () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, characters) => {
        expect([...slicesOf(text, characters)].join('')).toBe(text)
      }),
    )
  })

  it('give the tokens of the whole, cut at every place where a cut is allowed', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect([...slicesOf(text, 1)].flatMap((slice) => tokenizer.encode(slice))).toEqual(tokenizer.encode(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['source code', 'if(a[i]==="x"){return f(a,i+1)}else{b.push({k:v,n:null})};'],
    ['JSON', '{"id":"req_1","n":[1,2,3],"ok":true,"text":"a\\nb"},'],
    ['Chinese', '溢洪道让洪水安全通过大坝，因为水库满了以后，水必须有地方可去。'],
    ['lines', 'one\ntwo\n\n  - three\r\n\tfour\n'],
  ])('of %s give the tokens of the whole', (_, unit) => {
    const text = unit.repeat(120)
    expect([...slicesOf(text)].length).toBeGreaterThan(1)
    expect(encodeWhole(tokenizer, text)).toEqual(tokenizer.encode(text))
  })

  it.each([
    ['blanks', ' '.repeat(100_000)],
    ['one letter', 'a'.repeat(100_000)],
    ['Chinese without a stop', '水'.repeat(33_000)],
    ['emoji', '🌊'.repeat(25_000)],
    ['signs', '=-'.repeat(50_000)],
  ])('of a hundred kilobytes of %s are short, whole characters, and still spell the text', (_, text) => {
    const slices = [...slicesOf(text)]
    expect(Math.max(...slices.map((slice) => slice.length))).toBeLessThanOrEqual(SLICE_CHARACTERS + RUN_CHARACTERS_MAX)
    expect(slices.every((slice) => slice.isWellFormed())).toBe(true)
    // A tokenizer that is quadratic in the length of a word takes seconds for the whole, and milliseconds for slices.
    const tokens = slices.slice(0, 20).flatMap((slice) => tokenizer.encode(slice))
    const bytes = Buffer.concat(tokens.map((token) => tokenizer.bytesOf(token)))
    expect(bytes.toString()).toBe(slices.slice(0, 20).join(''))
  })
})
