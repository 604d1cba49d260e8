import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { KV_METER_DEFAULTS, type KvHoldings, KvMeter, type KvReport } from './kv-meter.ts'

const SECOND_US = 1_000_000
const { samplesMin, samplesMax, memoryUs } = KV_METER_DEFAULTS

/** Twenty of ours in an engine of 88,000 tokens. */
const BUSY: KvReport = { runningCount: 20, waitingCount: 0, kvUsageRatio: 0.25 }
const OURS: KvHoldings = { held: 20, heldContextTokens: 22_000 }

function reportTimes(meter: KvMeter, times: number, report = BUSY, ours = OURS, from = 0): number {
  for (let i = 0; i < times; i++) meter.report((from + i) * SECOND_US, report, ours)
  return from + times
}

describe('the capacity of an engine', () => {
  it('is what the engine tells, from the first report on, and is never guessed then', () => {
    const meter = new KvMeter()
    expect(meter.report(0, { kvTokensMax: 50_000 }, OURS)).toBe(true)
    expect(meter.capacity).toEqual({ tokensMax: 50_000, isTold: true })
    reportTimes(meter, samplesMax)
    expect(meter.capacity).toEqual({ tokensMax: 50_000, isTold: true })
    expect(meter.report(99 * SECOND_US, { kvTokensMax: 40_000 }, OURS)).toBe(true)
    expect(meter.capacity?.tokensMax).toBe(40_000)
  })

  it('is unknown again where the engine told it and has not for minutes: another one may be there', () => {
    const meter = new KvMeter()
    meter.report(0, { kvTokensMax: 1_000 }, OURS)
    meter.report(SECOND_US, { kvTokensMax: 1_000 }, OURS)
    expect(meter.report(memoryUs, {}, OURS)).toBe(false)
    expect(meter.capacity).toEqual({ tokensMax: 1_000, isTold: true })
    expect(meter.report(SECOND_US + memoryUs, {}, OURS)).toBe(true)
    expect(meter.capacity).toBeUndefined()
  })

  it('is not guessed from a share that is in use while nothing runs, until nothing is in use then', () => {
    const meter = new KvMeter()
    const idle = { runningCount: 0, waitingCount: 0 }
    meter.report(0, { ...idle, kvUsageRatio: 0.97 }, OURS)
    expect(meter.countsCache).toBe(true)
    const seconds = reportTimes(meter, 2 * samplesMin)
    expect(meter.capacity).toBeUndefined()
    meter.report(seconds * SECOND_US, { ...idle, kvUsageRatio: 0 }, OURS)
    expect(meter.countsCache).toBe(false)
    reportTimes(meter, samplesMin)
    expect(meter.capacity).toEqual({ tokensMax: 88_000, isTold: false })
  })

  it('is unknown until enough was seen, then guessed', () => {
    const meter = new KvMeter()
    reportTimes(meter, samplesMin - 1)
    expect(meter.capacity).toBeUndefined()
    reportTimes(meter, 1, BUSY, OURS, samplesMin)
    expect(meter.capacity).toEqual({ tokensMax: 88_000, isTold: false })
  })

  it.each<[string, KvReport, KvHoldings]>([
    ['too little is in use to divide by', { ...BUSY, kvUsageRatio: 0.1 }, OURS],
    ['the engine has no such gauge', { ...BUSY, kvUsageRatio: undefined }, OURS],
    ['the engine does not tell how many run', { ...BUSY, runningCount: undefined }, OURS],
    ['others use the memory too', { ...BUSY, runningCount: 30 }, OURS],
    ['some of ours do not run', { ...BUSY, runningCount: 15 }, OURS],
    ['some wait inside', { ...BUSY, waitingCount: 5 }, OURS],
    ['few run, and what stays cached outweighs them', { ...BUSY, runningCount: 2 }, { ...OURS, held: 2 }],
  ])('is not guessed where %s', (_, report, ours) => {
    const meter = new KvMeter()
    reportTimes(meter, 2 * samplesMax, report, ours)
    expect(meter.capacity).toBeUndefined()
  })

  it('is guessed within a tenth where sizes vary by half, and a minute of nonsense is outvoted or forgotten', () => {
    const rng = Rng.stream(7, 'kv')
    const meter = new KvMeter()
    let at = 0
    const noisy = (): void => {
      const heldContextTokens = 22_000 * (0.75 + rng.next() / 2)
      meter.report(at++ * SECOND_US, BUSY, { held: 20, heldContextTokens })
    }
    for (let i = 0; i < samplesMax; i++) noisy()
    expect(Math.abs((meter.capacity?.tokensMax ?? 0) / 88_000 - 1.12)).toBeLessThan(0.1)
    for (let i = 0; i < samplesMax / 4; i++) meter.report(at++ * SECOND_US, { ...BUSY, kvUsageRatio: 1 }, OURS)
    expect(meter.capacity?.tokensMax).toBeGreaterThan(80_000)
    for (let i = 0; i < samplesMax; i++) noisy()
    expect(meter.capacity?.tokensMax).toBeGreaterThan(88_000)
  })

  it('is unknown again after minutes without a guess, so that a wrong one does not last', () => {
    const meter = new KvMeter()
    const seconds = reportTimes(meter, samplesMin)
    const idle = { ...BUSY, runningCount: 0, kvUsageRatio: 0 }
    expect(meter.report((seconds - 1) * SECOND_US + memoryUs - 1, idle, { held: 0, heldContextTokens: 0 })).toBe(false)
    expect(meter.capacity).toBeDefined()
    expect(meter.report((seconds - 1) * SECOND_US + memoryUs, idle, { held: 0, heldContextTokens: 0 })).toBe(true)
    expect(meter.capacity).toBeUndefined()
  })
})
