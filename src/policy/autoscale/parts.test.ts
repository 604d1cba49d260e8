import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../base/clock.ts'
import { Rng } from '../../base/rng.ts'
import { Attainment } from './attainment.ts'
import { ColdStart } from './cold-start.ts'
import { DemandForecast } from './demand-forecast.ts'
import { HighestLately } from './highest-lately.ts'
import { OfferedWork } from './offered-work.ts'
import { RatioSketch } from './ratio-sketch.ts'
import { replicasFor, withinBounds } from './recommend.ts'
import { whoLeaves } from './who-leaves.ts'

describe('replicas for an amount of work', () => {
  const terms = { utilisationRatio: 0.8, drainTargetUs: 2_000_000 }

  it('follows the formula', () => {
    const need = { demandPerUs: 1.3e-3, marginPerUs: 1e-4, backlogCost: 200, drainPerReplicaUs: 5e-4 }
    expect(replicasFor(need, terms)).toBe(4)
    expect(replicasFor({ ...need, demandPerUs: 0, marginPerUs: 0, backlogCost: 0 }, terms)).toBe(0)
    expect(replicasFor({ ...need, drainPerReplicaUs: 0 }, terms)).toBe(1)
  })

  it('never falls when more is asked, and keeps to its bounds', () => {
    const rng = Rng.stream(3, 'needs')
    for (let i = 0; i < 500; i++) {
      const need = {
        demandPerUs: rng.next(),
        marginPerUs: rng.next(),
        backlogCost: 1e6 * rng.next(),
        drainPerReplicaUs: rng.next(),
      }
      const more = { ...need, demandPerUs: need.demandPerUs + rng.next(), backlogCost: need.backlogCost + rng.next() }
      expect(replicasFor(more, terms)).toBeGreaterThanOrEqual(replicasFor(need, terms))
      const bounded = withinBounds(replicasFor(need, terms), { minWarm: 2, max: 9 })
      expect(bounded).toBeGreaterThanOrEqual(2)
      expect(bounded).toBeLessThanOrEqual(9)
    }
    expect(withinBounds(Number.POSITIVE_INFINITY, { minWarm: 0, max: 5 })).toBe(5)
  })
})

it('keeps the highest number of a window, in bounded memory', () => {
  const highest = new HighestLately()
  for (const [at, value] of [
    [0, 5],
    [1, 3],
    [2, 4],
    [3, 2],
  ] as const)
    highest.observe(at, value)
  expect(highest.since(0)).toBe(5)
  expect(highest.since(1)).toBe(4)
  expect(highest.since(4)).toBeUndefined()
  for (let at = 10; at < 10_000; at++) highest.observe(at, 10_000 - at)
  expect(highest.since(10)).toBe(9_990)
})

it('takes the middle of the last cold starts, and the settings before there are any', () => {
  const start = new ColdStart(60)
  expect(start.us).toBe(60)
  for (const took of [42, 40, 95]) start.observe(took)
  expect(start.us).toBe(42)
  for (let i = 0; i < 9; i++) start.observe(10)
  expect([start.us, start.sampleCount]).toEqual([10, 9])
  start.observe(secondsToUs(7_200))
  expect(start.us).toBe(10)
})

describe('the forecast', () => {
  const second = secondsToUs(1)
  const feed = (forecast: DemandForecast, rateAt: (s: number) => number, seconds: number): void => {
    for (let s = 0; s < seconds; s++)
      forecast.observe(secondsToUs(s + 1), { cost: rateAt(s), elapsedUs: second, horizonUs: 60 * second })
  }

  it('finds a level and a trend', () => {
    const forecast = new DemandForecast({ memoriesUs: [] })
    feed(forecast, (s) => 100 + s / 10, 3_000)
    const ahead = forecast.at(60 * second) * second
    expect(ahead).toBeGreaterThan(402)
    expect(ahead).toBeLessThan(410)
  })

  it('takes nothing from hours of next to nothing for its margin', () => {
    const forecast = new DemandForecast()
    feed(forecast, (s) => (s < 3_600 ? 0.001 : 100), 3_690)
    expect(forecast.marginOn(100 / second)).toBeCloseTo(20 / second, 9)
  })

  it('calibrates its margin by its own errors', () => {
    const calm = new DemandForecast()
    feed(calm, () => 100, 2_000)
    expect(calm.marginOn(100 / second)).toBeLessThan(1e-9)
    const rng = Rng.stream(1, 'gusts')
    let gust = 0
    const windy = new DemandForecast()
    const blow = (): number => {
      gust += -gust / 120 + (rng.next() - 0.5) * 4
      return 100 + gust
    }
    feed(windy, blow, 2_000)
    expect(windy.marginOn(100 / second) * second).toBeGreaterThan(2)
  })

  it('remembers longer where single requests are huge, and follows fast where demand wanders', () => {
    const rng = Rng.stream(2, 'sizes')
    // One second in twenty brings everything.
    const scattered = new DemandForecast()
    const heard: number[] = []
    feed(scattered, () => (rng.next() < 0.05 ? 2_000 : 0), 4_000)
    for (let s = 4_000; s < 4_300; s++) {
      const cost = rng.next() < 0.05 ? 2_000 : 0
      scattered.observe(secondsToUs(s + 1), { cost, elapsedUs: second, horizonUs: 60 * second })
      heard.push(scattered.at(60 * second) * second)
    }
    // An average of ten seconds would go from nearly none to hundreds and back.
    expect(Math.max(...heard) / Math.min(...heard)).toBeLessThan(6)
    const wandering = new DemandForecast()
    // At the end it is at its lowest, 50; an average of minutes would still say 75.
    feed(wandering, (s) => 100 + 50 * Math.sin((2 * Math.PI * s) / 1_800), 4 * 1_800 - 400)
    expect(wandering.at(60 * second) * second).toBeLessThan(62)
  })

  it('does not follow a spike to the moon', () => {
    const forecast = new DemandForecast()
    feed(forecast, (s) => (s < 60 ? 1 : 100), 80)
    expect(forecast.at(600 * second)).toBeLessThanOrEqual(2 * forecast.level)
  })
})

describe('the sketch of ratios', () => {
  const sketchOf = (...asked: number[]): RatioSketch => {
    const sketch = new RatioSketch(secondsToUs(3_600))
    for (const each of asked) sketch.observe(each, 1, 0)
    return sketch
  }

  it('tells how many times over forecast work was asked for, within a bin', () => {
    const sketch = sketchOf(0.9, 1, 1.1, 1.5)
    expect(sketch.quantile(0.7)).toBeCloseTo(1.1, 1)
    expect(sketch.quantile(0.99)).toBeCloseTo(1.5, 1)
    expect(sketchOf(1, 1, 1).quantile(0.9)).toBe(1)
  })

  it('tells what planning would have cost at a lateness', () => {
    // Planned for 1.3 times each, 0.2 of 4.5 would have been late: 4 · 1.3 for 4.5.
    expect(sketchOf(0.9, 1, 1.1, 1.5).costAt(0.2 / 4.5)).toBeCloseTo((4 * 1.3) / 4.5, 1)
    expect(sketchOf(1, 1, 1).costAt(0.001)).toBeCloseTo(1, 1)
    expect(sketchOf().costAt(0.001)).toBe(Number.POSITIVE_INFINITY)
  })

  it('counts ratios beyond its bins as the last one, and forgets', () => {
    const sketch = sketchOf(1e9, 0)
    expect(sketch.quantile(0.6)).toBeGreaterThan(7)
    expect(sketch.quantile(0.6)).toBeLessThan(8)
    for (let i = 0; i < 100; i++) sketch.observe(1, 1, secondsToUs(600))
    expect(sketch.quantile(0.99)).toBe(1)
  })
})

describe('offered work', () => {
  it('adds up totals of gateways, each once, whatever is told twice or anew', () => {
    const offered = new OfferedWork()
    offered.observe('standard', 900)
    offered.observe('offline', 50)
    offered.hear('b', { online: 400, offline: 0 })
    // What b had been offered before it was first heard is history.
    expect(offered.total).toEqual({ online: 900, offline: 50 })
    offered.hear('b', { online: 650, offline: 10 })
    offered.hear('b', { online: 650, offline: 10 })
    expect(offered.total).toEqual({ online: 1_150, offline: 60 })
    // A new process of the same name begins at zero.
    offered.hear('b', { online: 30, offline: 0 })
    expect(offered.total).toEqual({ online: 1_180, offline: 60 })
    expect(offered.own).toEqual({ online: 900, offline: 50 })
  })

  it('remembers a bounded number of gateways', () => {
    const offered = new OfferedWork()
    for (let i = 0; i < 1_000; i++) offered.hear(`g${i}`, { online: 5, offline: 0 })
    // The first is forgotten, and therefore new again; the last is known.
    offered.hear('g0', { online: 9, offline: 0 })
    expect(offered.total.online).toBe(0)
    offered.hear('g999', { online: 9, offline: 0 })
    expect(offered.total.online).toBe(4)
  })
})

it('lets go those with nothing of worth first, then the emptiest, then the youngest', () => {
  const replicas = [
    { id: 'a', heldCount: 3, soleHotBlocks: 0, place: 0 },
    { id: 'b', heldCount: 0, soleHotBlocks: 0, place: 1 },
    { id: 'c', heldCount: 0, soleHotBlocks: 7, place: 2 },
    { id: 'd', heldCount: 0, soleHotBlocks: 0, place: 3 },
    { id: 'e', heldCount: 9, soleHotBlocks: 2, place: 4 },
  ]
  expect(whoLeaves(replicas, 5).map(({ id }) => id)).toEqual(['d', 'b', 'a', 'e', 'c'])
  expect(whoLeaves(replicas, -1)).toEqual([])
})

it('tells which share was served as promised', () => {
  const attainment = new Attainment()
  expect(attainment.ratio).toBe(1)
  for (let i = 0; i < 10; i++) attainment.observe(i, i !== 3)
  expect(attainment.ratio).toBeCloseTo(0.9)
})
