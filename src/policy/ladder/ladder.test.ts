import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Tenant } from '../../domain/tenant.ts'
import { Demand } from './demand.ts'
import { Ladder, type RungChange } from './ladder.ts'
import { OfflineShedding } from './offline-shedding.ts'
import { PRESSURE_CEILING, pressureOf } from './pressure.ts'
import { checkRungs, DEFAULT_RUNGS, FULL_TERMS } from './rungs.ts'

const SECOND = 1_000_000
const TICK = 100_000

const tenantOf = (id: string, contract: Tenant['contract'] = 'degrade'): Tenant =>
  ({ id, contract, weight: 1 }) as unknown as Tenant
const acme = tenantOf('acme')

interface Run {
  readonly ladder: Ladder
  readonly changes: RungChange[]
  now: number
}

const start = (): Run => ({ ladder: new Ladder(DEFAULT_RUNGS), changes: [], now: 0 })

/** Feeds a pressure (a number, or a function of time) every tick for so long, of requests that ask for passages. */
function press(
  run: Run,
  seconds: number,
  pressure: number | ((now: number) => number),
  demand = 0,
  hasPassages = true,
): Run {
  const until = run.now + seconds * SECOND
  while (run.now < until) {
    run.now += TICK
    const value = typeof pressure === 'number' ? pressure : pressure(run.now)
    const change = run.ladder.observe(run.now, { tenant: acme, poolId: 'p', pressure: value, demand, hasPassages })
    if (change !== undefined) run.changes.push(change)
    run.changes.push(...run.ladder.tick(run.now))
  }
  return run
}

const path = (run: Run): string => run.changes.map((change) => change.to.name).join(' ')

describe('ladder', () => {
  it('goes down a rung at a time, and back', () => {
    const run = press(start(), 7, 2)
    expect(path(run)).toBe('trim-retrieval trim-context cap-output smaller-model shed-offline')
    expect(run.ladder.depthOf(acme, 'p')).toBe(5)
    expect(run.ladder.depthOf(acme, 'other-pool')).toBe(0)
    run.changes.length = 0
    press(run, 10, 0)
    expect(path(run)).toBe('smaller-model cap-output trim-context trim-retrieval full')
    expect(run.ladder.size).toBe(0)
  })

  it('goes past a rung that would give up nothing', () => {
    const run = press(start(), 7, 2, 0, false)
    expect(path(run)).toBe('trim-context cap-output smaller-model shed-offline')
    run.changes.length = 0
    press(run, 10, 0, 0, false)
    expect(path(run)).toBe('smaller-model cap-output trim-context full')
    // Passages that are asked for on the way count from then on.
    const mixed = press(press(start(), 2.5, 2, 0, false), 1, 2)
    press(mixed, 10, 0)
    expect(path(mixed)).toMatch(/^trim-context .* trim-context trim-retrieval full$/)
  })

  it('stops at the rung that relieves the pressure', () => {
    const run = start()
    press(run, 30, () => 1.4 - 0.35 * run.ladder.depthOf(acme, 'p'))
    expect(run.ladder.depthOf(acme, 'p')).toBe(2)
    expect(run.changes.length).toBe(2)
  })

  it('does not flap when pressure oscillates around a threshold', () => {
    for (const periodUs of [200_000, 700_000, 1_500_000, 4 * SECOND, 9 * SECOND]) {
      for (const threshold of [0.7, 0.4]) {
        const run = press(start(), 3, 0.75)
        run.changes.length = 0
        press(run, 60, (now) => threshold + (now % periodUs < periodUs / 2 ? 0.08 : -0.08))
        expect(run.changes.length).toBeLessThanOrEqual(1)
      }
    }
  })

  it('changes at most once per dwell, whatever the pressure does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 4, noNaN: true }), { minLength: 1, maxLength: 400 }),
        (pressures) => {
          const run = start()
          let i = 0
          press(run, 40, () => pressures[i++ % pressures.length] as number)
          for (let c = 1; c < run.changes.length; c++) {
            const [before, change] = [run.changes[c - 1] as RungChange, run.changes[c] as RungChange]
            expect(Math.abs(change.to.depth - change.from.depth)).toBe(1)
            expect(change.from).toEqual(before.to)
            expect(change.at - before.at).toBeGreaterThanOrEqual(SECOND)
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it('does not relax while the demand in full would not be carried', () => {
    const run = press(start(), 1.5, 0.75)
    expect(path(run)).toBe('trim-retrieval')
    press(run, 60, 0.05, 1.5)
    expect(path(run)).toBe('trim-retrieval')
    press(run, 4, 0.05, 0.9)
    expect(path(run)).toBe('trim-retrieval full')
  })

  it('takes silence for the end of pressure', () => {
    const run = press(start(), 3, 2)
    const changes: RungChange[] = []
    for (let t = run.now; t < run.now + 12 * SECOND; t += TICK) changes.push(...run.ladder.tick(t))
    expect(changes.at(-1)?.to.name).toBe('full')
    expect(run.ladder.size).toBe(0)
  })

  it('leaves who would rather be refused on full, also when the contract changes on the way', () => {
    const ladder = new Ladder(DEFAULT_RUNGS)
    const run = { ladder, changes: [], now: 0 }
    press(run, 3, 2)
    const proud = tenantOf('acme', 'reject')
    expect(ladder.depthOf(proud, 'p')).toBe(0)
    const change = ladder.observe(run.now, { tenant: proud, poolId: 'p', pressure: 2, demand: 0 })
    expect(change?.to.name).toBe('full')
    expect(ladder.observe(run.now, { tenant: proud, poolId: 'p', pressure: 2, demand: 0 })).toBeUndefined()
  })

  it('remembers a bounded number, and the degraded before the others', () => {
    const ladder = new Ladder(DEFAULT_RUNGS, { statesMax: 10 })
    for (let t = 0; t <= 2 * SECOND; t += TICK) ladder.observe(t, { tenant: acme, poolId: 'p', pressure: 2, demand: 0 })
    for (let i = 0; i < 100; i++) {
      ladder.observe(2 * SECOND, { tenant: tenantOf(`t${i}`), poolId: 'p', pressure: 0.5, demand: 0 })
    }
    expect(ladder.size).toBe(10)
    expect(ladder.depthOf(acme, 'p')).toBeGreaterThan(0)
  })
})

describe('demand', () => {
  /** A minute of steady asking, at a pool that can do 100 a second. */
  function askedFor(asks: Readonly<Record<string, number>>, orgs: Readonly<Record<string, Partial<Tenant>>> = {}) {
    const demand = new Demand({ memoryUs: 2 * SECOND })
    let now = 0
    for (; now < 60 * SECOND; now += TICK) {
      for (const [id, perSecond] of Object.entries(asks)) {
        demand.observe(now, { tenant: { ...tenantOf(id), ...orgs[id] }, cost: perSecond / 10 })
      }
    }
    demand.settleLevel(now, 100 / SECOND)
    return { demand, now }
  }
  const ASKS = { A: 150, B: 20, C: 30 }

  it('reads as in the header', () => {
    const { demand, now } = askedFor(ASKS)
    expect(demand.of(now, 'A')).toBeCloseTo(3.75, 0)
    expect(demand.of(now, 'B')).toBeLessThan(0.6)
    expect(demand.of(now, 'C')).toBeLessThan(0.85)
    demand.settleLevel(now, 1_000 / SECOND)
    expect(demand.of(now, 'A')).toBe(0)
    expect(demand.of(now, 'nobody')).toBe(0)
  })

  it('fills an org with a weight of its own, and then its tenants', () => {
    const org = { orgId: 'small', orgWeight: 1 }
    const { demand, now } = askedFor(ASKS, { B: org, C: org })
    // Rates are learned to within a few percent.
    expect(demand.of(now, 'A') / (150 / 45)).toBeCloseTo(1, 1)
    expect(demand.of(now, 'B') / (20 / 25)).toBeCloseTo(1, 1)
    expect(demand.of(now, 'C') / (30 / 25)).toBeCloseTo(1, 1)
    // Without a weight of its own an org is no more than the tenants that it has.
    const named = askedFor(ASKS, { B: { orgId: 'small' }, C: { orgId: 'small' } })
    const alone = askedFor(ASKS)
    for (const id of ['A', 'B', 'C']) expect(named.demand.of(now, id)).toBe(alone.demand.of(now, id))
    // Ten tenants of one org get what the org weighs, not what ten tenants weigh.
    const crowd = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`t${i}`, 30]))
    const weighed = askedFor({ ...crowd, alone: 40 }, Object.fromEntries(Object.keys(crowd).map((id) => [id, org])))
    expect(weighed.demand.of(now, 'alone')).toBeLessThan(1)
    expect(weighed.demand.of(now, 't0')).toBeGreaterThan(4)
    expect(askedFor({ ...crowd, alone: 40 }).demand.of(now, 'alone')).toBeGreaterThan(4)
  })

  it('forgets who offers nothing any more', () => {
    const demand = new Demand()
    for (let i = 0; i < 100; i++) demand.observe(i, { tenant: tenantOf(`t${i}`), cost: 10 })
    demand.settleLevel(60 * SECOND, 1)
    expect(demand.tenantCount).toBe(0)
  })
})

describe('offline shedding', () => {
  it('switches with hysteresis and dwell', () => {
    const shedding = new OfflineShedding(0, 'p')
    let changes = 0
    const feed = (fromS: number, toS: number, pressure: number): void => {
      for (let t = fromS * SECOND; t < toS * SECOND; t += TICK) {
        if (shedding.observe(t, pressure) !== undefined) changes++
      }
    }
    feed(0, 5, 1.5)
    expect(shedding.isShed).toBe(true)
    feed(5, 30, 0.8)
    expect(shedding.isShed).toBe(true)
    feed(30, 40, 0.3)
    expect(shedding.isShed).toBe(false)
    expect(changes).toBe(2)
  })
})

describe('rungs and pressure', () => {
  it('checks that rungs only ever take', () => {
    expect(() => checkRungs([{ ...FULL_TERMS, name: 'half' }])).toThrow('gives up nothing')
    const capped = { ...FULL_TERMS, name: 'cap', depth: 1, outputTokensMax: 10 }
    expect(() => checkRungs([FULL_TERMS, capped, { ...FULL_TERMS, name: 'more', depth: 2 }])).toThrow('output back')
  })

  it('is a number also when nothing can be predicted or afforded', () => {
    expect(pressureOf({ predictedUs: 300, affordableUs: 450 })).toBeCloseTo(0.67, 2)
    expect(pressureOf({ predictedUs: Number.POSITIVE_INFINITY, affordableUs: 450 })).toBe(PRESSURE_CEILING)
    expect(pressureOf({ predictedUs: 1, affordableUs: -5 })).toBe(PRESSURE_CEILING)
  })
})
