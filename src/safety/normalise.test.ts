import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalise, originalPlace, originalStart } from './normalise.ts'

describe('normalise', () => {
  it.each([
    ['plain text stays', 'The quick (brown) fox: 1+1=2.', 'The quick (brown) fox: 1+1=2.'],
    ['accents stay', 'Café Müller', 'Café Müller'],
    ['zero-width characters go', 'a\u200bb\u00adc\ufeffd\u2060e', 'abcde'],
    ['combining accents go', 'e\u0301x', 'ex'],
    ['full width', 'Ａ１＠．', 'A1@.'],
    ['look-alikes', 'раураl', 'paypal'],
    ['letters of mathematics', '𝐀𝟏𝒷', 'A1b'],
    ['digits of other scripts', '٠١٢۳४', '01234'],
    ['ligatures become several', 'ﬁle …', 'file ...'],
    ['spaces and hyphens', 'a\u00a0b\u2009c–d−e', 'a b c-d-e'],
    ['tags go', 'a\u{e0041}\u{e007f}b', 'ab'],
    ['pictures stay', '😀 漢字', '😀 漢字'],
    ['escapes are what they stand for', 'a\\u0040b \\uFF21\\u200bc', 'a@b Ac'],
    ['escaped line ends are line ends', 'a\\n1\\r\\t2', 'a\n1\n\n2'],
    ['escapes in escapes', 'a\\\\u0040b\\\\\\\\nc', 'a@b\nc'],
    ['halves of escapes stay', 'a\\u004 \\x \\', 'a\\u004 \\x \\'],
    ['escaped halves of pairs stay', '\\ud83d\\ude00', '\\ud83d\\ude00'],
    ['halves of pairs stay', 'a\ud835 \udc00b', 'a\ud835 \udc00b'],
  ])('%s', (_name, text, expected) => {
    expect(normalise(text).text).toBe(expected)
  })

  it('leads back to where each unit was', () => {
    const text = 'x\u200bﬁ𝐀y'
    const folded = normalise(text)
    expect(folded.text).toBe('xfiAy')
    expect([0, 1, 2, 3, 4].map((place) => originalStart(folded, place))).toEqual([0, 2, 2, 3, 5])
    expect(originalPlace(folded, { start: 0, end: 2 })).toEqual({ start: 0, end: 3 })
    expect(originalPlace(folded, { start: 3, end: 5 })).toEqual({ start: 3, end: 6 })
  })

  it('folds each code point by itself, and maps every unit to one that folds to it', () => {
    const chars = fc.constantFrom(
      'a',
      '1',
      '\u200b',
      'ﬁ',
      '…',
      '𝐀',
      '😀',
      'а',
      '１',
      ' ',
      '\u{e0041}',
      'é',
      '½',
      '\\u0040',
      '\\n',
      '\\\\u00e9',
      '\\u200b',
    )
    fc.assert(
      fc.property(fc.array(chars, { maxLength: 20 }), (parts) => {
        const text = parts.join('')
        const folded = normalise(text)
        expect(folded.text).toBe(parts.map((part) => normalise(part).text).join(''))
        for (let i = 0; i < folded.text.length; i++) {
          const { start, end } = originalPlace(folded, { start: i, end: i + 1 })
          expect(normalise(text.slice(start, end)).text).toContain(folded.text[i])
        }
      }),
    )
  })
})
