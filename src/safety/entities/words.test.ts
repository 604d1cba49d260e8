import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterWords, UnitWindow } from './words.ts'

const WINDOW_UNITS = 4_096

describe('the first place that may be something', () => {
  it.each([
    ['words only', 'the end. (see there) namely: it ', 32],
    ['words with marks inside', "don't be well-known ", 20],
    ['a number', 'In the year 1833', 12],
    ['an address', 'write to me@example.com', 9],
    ['a long name in capitals and small letters', 'the value of someCamelCaseName ', 13],
  ])('%s', (_name, text, expected) => {
    expect(afterWords(text, 0)).toBe(expected)
    const window = new UnitWindow()
    window.open(text)
    expect(window.afterWords(0)).toBe(expected)
  })

  it('is the same by unit and by window, wherever the window ends', () => {
    const pieces = fc.constantFrom(
      'the ',
      'end. ',
      "don't",
      'well-known',
      '(',
      ')',
      ':',
      ' ',
      '.',
      "'",
      'é',
      '漢',
      '7',
      'aB',
      '\n',
    )
    const window = new UnitWindow()
    fc.assert(
      fc.property(
        fc.integer({ min: -30, max: 2 }),
        fc.array(pieces, { maxLength: 40 }),
        fc.nat(60),
        (offset, parts, skip) => {
          for (const letter of ['a', 'a ', 'camelCase, '])
            for (const windows of [0, 1, 2]) {
              const units = Math.max(0, windows * WINDOW_UNITS + offset)
              const text = letter.repeat(Math.ceil(units / letter.length)).slice(0, units) + parts.join('')
              const from = Math.min(text.length, windows === 0 ? skip : Math.max(0, units - skip))
              window.open(text)
              for (const at of [0, from]) expect(window.afterWords(at)).toBe(afterWords(text, at))
            }
        },
      ),
    )
  })
})
