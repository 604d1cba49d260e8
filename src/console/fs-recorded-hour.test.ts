import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { cutRecordedHour } from './fs-recorded-hour.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-recorded-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const HEADER = '{"spillway":"recording","version":1,"startedAt":"2026-11-16T00:00:00.000Z"}'
const line = (atS: number, tenant = 'acme'): string =>
  `{"atUs":${Math.round(atS * 1_000_000)},"tenant":"${tenant}","prompt":3}`
const write = (name: string, ...lines: string[]): string => {
  const path = join(folder, name)
  writeFileSync(path, lines.join('\n'))
  return path
}
const timesOf = (path: string): number[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((text) => (JSON.parse(text) as { atUs: number }).atUs / 1_000_000)

describe('cutRecordedHour', () => {
  it('takes the last hour, from zero, without what is cut short or is no request', () => {
    const path = write(
      'a',
      HEADER,
      line(10),
      line(90_000),
      line(93_000),
      '{"lost":3}',
      line(93_500),
      '{"atUs":93600000000,"ten',
    )
    const hour = cutRecordedHour(path, folder)!
    expect(hour).toMatchObject({ requestCount: 3, durationS: 3_501 })
    expect(timesOf(hour.tracePath)).toEqual([0, 3_000, 3_500])
    expect(readFileSync(hour.tracePath, 'utf8').startsWith(`${HEADER}\n`)).toBe(true)
  })

  it('goes on in the file before, where that is of the same recording', () => {
    write('b.1', HEADER, line(100), line(3_000))
    const path = write('b', HEADER, line(4_000))
    expect(timesOf(cutRecordedHour(path, folder)!.tracePath)).toEqual([0, 1_000])
    write('c.1', HEADER.replace('16T', '15T'), line(3_999))
    expect(timesOf(cutRecordedHour(write('c', HEADER, line(4_000)), folder)!.tracePath)).toEqual([0])
  })

  it('is bounded, and is nothing where nothing was recorded', () => {
    const many = write('d', HEADER, ...Array.from({ length: 100_500 }, (_, i) => line(i / 100)))
    expect(cutRecordedHour(many, folder)!.requestCount).toBe(100_000)
    for (const path of [join(folder, 'none'), write('e', ''), write('f', HEADER)])
      expect(cutRecordedHour(path, folder), path).toBeUndefined()
  })
})
