import { expect, it } from 'vitest'
// @ts-expect-error The page's own code has no types.
import { csvOf } from '../../pages/csv.js'

const spell = csvOf as (heads: readonly string[], rows: ReadonlyArray<Record<string, unknown>>) => string

it('writes cells that no spreadsheet runs, and quotes what it must', () => {
  const names = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', 'plain', 'a "b", c', undefined]
  const [, ...lines] = spell(
    ['name', 'n'],
    names.map((name, n) => ({ name, n })),
  ).split('\r\n')
  expect(lines.slice(0, 4)).toEqual([`"'=1+1","0"`, `"'+1","1"`, `"'-1","2"`, `"'@SUM(A1)","3"`])
  expect(lines[4]).toBe(`"'\t=1","4"`)
  expect(lines.slice(-3)).toEqual(['"plain","6"', '"a ""b"", c","7"', '"","8"'])
})
