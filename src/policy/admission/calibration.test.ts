import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { Calibration, type CalibrationCell } from './calibration.ts'
import { LengthReport } from './length-report.ts'

const MS = 1_000
const PATIENCE = { ttftUs: 1_000 * MS, finishUs: 10_000 * MS }
const CELL: CalibrationCell = { poolId: 'p', sloName: 'fast', promptTokens: 500 }

interface World {
  /** actual = predicted × bias × (noise around 1). */
  readonly bias: number
  readonly noise: (rng: Rng) => number
  readonly delay?: number
  /** Share of tickets that never get a turn. */
  readonly lostRatio?: number
}

/** Heavy-tailed and lopsided, median about 1: mostly 0.8–1.3, one in fifty 2–4. */
const skewed = (rng: Rng): number =>
  rng.next() < 0.02 ? 2 + 2 * rng.next() : 0.8 + 0.2 * rng.next() + 0.3 * rng.next() ** 2

/** Tickets with every prediction from nothing to hopeless; observes only those it admits, some time later. */
function run(calibration: Calibration, world: World, count: number, seed = 1): { admitted: number; late: number } {
  const rng = Rng.stream(seed, 'calibration')
  const pending: (() => void)[] = []
  let admitted = 0
  let late = 0
  for (let i = 0; i < count; i++) {
    const predictedTtftUs = 2_000 * MS * rng.next()
    const predicted = { waitUs: 0, ttftUs: predictedTtftUs, finishUs: predictedTtftUs + 1_000 * MS }
    const actualTtftUs =
      rng.next() < (world.lostRatio ?? 0) ? Number.POSITIVE_INFINITY : predictedTtftUs * world.bias * world.noise(rng)
    const { ttft } = calibration.termsFor(CELL)
    if (predictedTtftUs * ttft.biasRatio <= PATIENCE.ttftUs * (1 - ttft.marginRatio)) {
      const actual = { ttftUs: actualTtftUs, finishUs: actualTtftUs + 1_000 * MS }
      admitted++
      if (actual.ttftUs > PATIENCE.ttftUs) late++
      pending.push(() => {
        const seen = { ...CELL, predicted, patience: PATIENCE }
        if (actualTtftUs < Number.POSITIVE_INFINITY) calibration.begun(i * 10 * MS, { ...seen, ttftUs: actualTtftUs })
        calibration.ended(i * 10 * MS, { ...seen, actual })
      })
    }
    if (pending.length > (world.delay ?? 0)) pending.shift()?.()
  }
  return { admitted, late }
}

const coverage = (seen: { admitted: number; late: number }): number => 1 - seen.late / seen.admitted

describe('calibration', () => {
  it('starts at the floor and leaves it only with reason', () => {
    const calibration = new Calibration({ marginFloor: 0.15 })
    expect(calibration.termsFor(CELL).ttft).toEqual({ biasRatio: 1, marginRatio: 0.15 })
    run(calibration, { bias: 1, noise: () => 1 }, 2_000)
    const { ttft } = calibration.termsFor(CELL)
    expect(ttft.biasRatio).toBeCloseTo(1, 1)
    expect(ttft.marginRatio).toBe(0.15)
  })

  it.each([
    ['unbiased', { bias: 1, noise: skewed }],
    ['under-predicting by half', { bias: 1.5, noise: skewed }],
    ['over-predicting by half', { bias: 0.67, noise: skewed }],
    ['answering late, a hundred at a time', { bias: 1.3, noise: skewed, delay: 100 }],
    ['losing one in a hundred', { bias: 1, noise: skewed, lostRatio: 0.01 }],
  ] satisfies [string, World][])('reaches its coverage when %s', (_, world) => {
    const calibration = new Calibration()
    run(calibration, world, 3_000)
    const settled = run(calibration, world, 20_000, 2)
    expect(coverage(settled)).toBeGreaterThan(0.96)
    // And does not buy it by refusing everybody: a prediction that is right admits half of these tickets.
    expect(settled.admitted / 20_000).toBeGreaterThan(0.18 / world.bias)
  })

  it('never makes a prediction rosier than it is, however pessimistic it was of late', () => {
    const calibration = new Calibration()
    run(calibration, { bias: 0.5, noise: () => 1 }, 2_000)
    expect(calibration.termsFor(CELL).ttft).toEqual({ biasRatio: 1, marginRatio: 0.15 })
  })

  it('recovers from a blackout without being told', () => {
    const calibration = new Calibration()
    run(calibration, { bias: 1, noise: skewed }, 3_000)
    run(calibration, { bias: 1, noise: skewed, lostRatio: 1 }, 2_000)
    expect(calibration.termsFor(CELL).ttft.marginRatio).toBe(0.6)
    run(calibration, { bias: 1, noise: skewed }, 20_000)
    expect(calibration.termsFor(CELL).ttft.marginRatio).toBeLessThan(0.4)
  })

  it('lets a size with few samples learn from its class', () => {
    const calibration = new Calibration()
    run(calibration, { bias: 1.5, noise: () => 1 }, 2_000)
    expect(calibration.termsFor({ ...CELL, promptTokens: 20_000 }).ttft.biasRatio).toBeCloseTo(1.5, 1)
    expect(calibration.termsFor({ ...CELL, sloName: 'slow' }).ttft.biasRatio).toBe(1)
  })

  it('publishes coverage and false admits, over all and by cell', () => {
    const calibration = new Calibration()
    const seen = run(calibration, { bias: 1.2, noise: skewed }, 5_000)
    expect(calibration.view()).toEqual({
      observed: seen.admitted,
      falseAdmits: seen.late,
      coverage: 1 - seen.late / seen.admitted,
    })
    expect(calibration.cells().map((cell) => cell.name)).toEqual(['p/fast/1024', 'p/fast'])
  })

  it('keeps a bounded number of cells', () => {
    const calibration = new Calibration({ cellsMax: 8 })
    const predicted = { waitUs: 0, ttftUs: 1, finishUs: 1 }
    for (let i = 0; i < 100; i++) {
      calibration.ended(0, { ...CELL, poolId: `p${i}`, predicted, patience: PATIENCE, actual: predicted })
    }
    expect(calibration.cells().length).toBe(8)
  })
})

it('learns nothing of first tokens that waited for a few long answers to end, and counts them all the same', () => {
  const calibration = new Calibration()
  const predicted = { waitUs: 500 * MS, ttftUs: 500 * MS, finishUs: 2_000 * MS, isLumpy: true } as const
  for (let i = 0; i < 100; i++) {
    const seen = { ...CELL, predicted, patience: PATIENCE }
    const ttftUs = (i % 2 === 0 ? 50 : 3_000) * MS
    calibration.begun(i, { ...seen, ttftUs })
    calibration.ended(i, { ...seen, actual: { ttftUs, finishUs: 4_000 * MS } })
  }
  expect(calibration.termsFor(CELL).ttft).toEqual({ biasRatio: 1, marginRatio: 0.15 })
  expect(calibration.view()).toMatchObject({ observed: 100, falseAdmits: 50 })
})

describe('length report', () => {
  it('tells by decile of what was offered', () => {
    const report = new LengthReport()
    for (let i = 0; i < 1_000; i++) {
      const tokens = 100 * 2 ** (i % 10)
      report.count('offered', tokens)
      if (tokens <= 25_600 || i % 20 < 10) report.count('admitted', tokens)
      else report.count('refused-late', tokens)
    }
    const rows = report.byDecile()
    expect(rows.map((row) => row.decile)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(rows.map((row) => row.admitted / row.offered)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5])
    for (const row of rows) expect(row.tokensFrom).toBeLessThanOrEqual(100 * 2 ** (row.decile - 1))
    expect(rows[9]).toMatchObject({ refusedLate: 50, late: 0, falseRejects: 0 })
  })

  it('holds the extremes', () => {
    const report = new LengthReport()
    for (const tokens of [0, 1, 3, 4, 2 ** 20, 2 ** 30]) report.count('offered', tokens)
    expect(report.byDecile().reduce((sum, row) => sum + row.offered, 0)).toBe(6)
  })
})
