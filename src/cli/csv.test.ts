import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csvOf, parseCsv } from './csv.ts'

describe('a table for spreadsheets', () => {
  it('quotes what needs it, and leaves numbers alone', () => {
    expect(csvOf([['a', 1, '-2.5', null, '', 'x,"y"\n', ' z']])).toBe('a,1,-2.5,,"","x,""y""\n"," z"\r\n')
  })

  it.each(['=1+1', '+1', '-1+2', '@SUM(A1)', '\tx', '\rx', '=cmd|"/c calc"!A1'])('runs no formula: %j', (text) => {
    const [[cell]] = parseCsv(csvOf([[text]])) as [[string]]
    expect(cell).toBe(`'${text}`)
  })

  it('is read back as it was written', () => {
    const plain = fc.string().filter((text) => !/^[=+\-@\t\r]/.test(text))
    const cells = fc.array(fc.oneof(plain, fc.constant(null)), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(fc.array(cells), (rows) => {
        expect(parseCsv(csvOf(rows))).toEqual(rows)
      }),
    )
  })

  it.each(['"a', '"a"b,c', 'a,"b""'])('is none with a broken quote: %j', (text) => {
    expect(parseCsv(text)).toBeUndefined()
  })

  it('may end without a line break, or with an empty cell', () => {
    expect(parseCsv('a,b\nc,')).toEqual([
      ['a', 'b'],
      ['c', null],
    ])
  })
})
