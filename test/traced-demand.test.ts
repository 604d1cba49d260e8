import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { drawTracedDay, readWork } from '../bench/experiments/kit/traced-demand.ts'

/** Ten minutes: nothing but one request in the first, then one of 100 + 4 · 25 each second, and of twice that from 300 s on. */
const folder = mkdtempSync(join(tmpdir(), 'traced-'))
const path = join(folder, 'trace.csv')
const lines = ['arrival_s,input_tokens,output_tokens', '0.000,100,25']
for (let s = 60; s < 600; s++) lines.push(`${s}.000,${s < 300 ? 100 : 200},${s < 300 ? 25 : 50}`)
writeFileSync(path, `${lines.join('\n')}\n`)
afterAll(() => rmSync(folder, { recursive: true }))

const sum = (values: Float64Array): number => values.reduce((total, each) => total + each, 0)

describe('a recording as a day', () => {
  const recorded = readWork(path)
  const day = { seed: 1, seconds: 86_400, meanReplicas: 10, requestsPerWork: 7 }

  it('leaves the thin beginning out, and goes there and back without a jump', () => {
    expect(recorded.lengthS).toBe(2 * 539)
    expect(recorded.requests).toHaveLength(2 * 540)
    expect(recorded.requests[0]).toEqual({ atS: 0, cost: 200 })
    expect(recorded.requests.map(({ cost }) => cost)).toEqual(recorded.requests.map(({ cost }) => cost).toReversed())
  })

  it('has the work that it was told, 1.6 times as much by day and 0.4 times by night', () => {
    for (const growth of ['grown', 'many'] as const) {
      const work = drawTracedDay(recorded, { ...day, growth })
      expect(sum(work)).toBeCloseTo(864_000, 3)
      const hours = Array.from(
        { length: 24 },
        (_, hour) => sum(work.subarray(hour * 3_600, (hour + 1) * 3_600)) / 36_000,
      )
      expect(Math.max(...hours)).toBeCloseTo(1.6, 0)
      expect(Math.min(...hours)).toBeCloseTo(0.4, 0)
    }
  })

  it('keeps the recording’s minutes where one service grows, and evens them out where there are many', () => {
    const unevenness = (growth: 'grown' | 'many'): number => {
      const work = drawTracedDay(recorded, { ...day, growth })
      const minutes = Array.from({ length: 1_440 }, (_, minute) => sum(work.subarray(minute * 60, (minute + 1) * 60)))
      const changes = minutes.slice(3).map((each, i) => Math.abs(Math.log(each / (minutes[i] as number))))
      return changes.reduce((total, each) => total + each, 0) / changes.length
    }
    expect(unevenness('grown')).toBeGreaterThan(3 * unevenness('many'))
  })

  it('is the same for a seed, and another for another', () => {
    const drawn = (seed: number): Float64Array => drawTracedDay(recorded, { ...day, seed, growth: 'grown' })
    expect(drawn(3)).toEqual(drawn(3))
    expect(drawn(3)).not.toEqual(drawn(4))
  })
})
