import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SharePath } from '../../domain/share-path.ts'
import { RETURN_SLOT_DEFAULTS, ReturnSlots, type SlotQuestion } from './return-slots.ts'

const SECOND = 1_000_000
const { leadUs, graceUs, horizonUs } = RETURN_SLOT_DEFAULTS

const pathOf = (tenant: string): SharePath => ({
  org: { id: tenant, weight: 1 },
  tenant: { id: tenant, weight: 1 },
  key: { id: `${tenant}-key`, weight: 1 },
})

const ask = (name: string, afterUs: number, changed: Partial<SlotQuestion> = {}): SlotQuestion => ({
  poolId: 'pool',
  laneId: 'lane',
  name,
  share: pathOf('a'),
  band: 'standard',
  cost: 100,
  afterUs,
  ...changed,
})

const newcomer = (tenant: string) => ({ share: pathOf(tenant), band: 'standard' as const, cost: 100 })

describe('return slots', () => {
  it('know who comes when he was told, and nobody else', () => {
    const slots = new ReturnSlots()
    const slot = slots.give(0, ask('x', 5 * SECOND))
    expect(slot?.dueAt).toBe(5 * SECOND)
    expect(slots.dueFor(5 * SECOND - 1, 'x'), 'too early').toBeUndefined()
    expect(slots.dueFor(5 * SECOND, 'y'), 'a stranger').toBeUndefined()
    expect(slots.dueFor(5 * SECOND, 'x')).toBe(slot)
    slots.takeUp('x', true, true)
    expect(slots.dueFor(5 * SECOND, 'x'), 'once').toBeUndefined()
    expect(slots.count).toBe(0)
    expect(slots.counts).toMatchObject({ given: 1, kept: 1, missed: 0 })
  })

  it('forget lanes that nobody has a slot of, the oldest first', () => {
    const slots = new ReturnSlots({ lanesMax: 2 })
    slots.give(0, ask('x', 5 * SECOND))
    for (let i = 0; i < 100; i++) slots.admitted(0, `lane ${i}`, 1)
    expect(slots.hasClaims('lane')).toBe(true)
    expect(slots.dueFor(5 * SECOND, 'x')).toBeDefined()
    expect(slots.laneCount).toBe(2)
  })

  it('are of no more lanes than are remembered', () => {
    const slots = new ReturnSlots({ lanesMax: 20 })
    for (let i = 0; i < 100; i++) slots.give(0, ask(`${i}`, 5 * SECOND, { laneId: `lane ${i}` }))
    expect(slots.laneCount).toBe(20)
    expect(slots.counts).toMatchObject({ given: 20, none: 80 })
    const afterwards = 5 * SECOND + graceUs + 1
    expect(slots.give(afterwards, ask('later', SECOND, { laneId: 'another' }))).toBeDefined()
    expect(slots.laneCount).toBe(20)
  })

  it('end when their time is over', () => {
    const slots = new ReturnSlots()
    slots.give(0, ask('x', 5 * SECOND))
    expect(slots.dueFor(5 * SECOND + graceUs + 1, 'x')).toBeUndefined()
    expect(slots.count).toBe(0)
    expect(slots.counts).toMatchObject({ kept: 0, missed: 1 })
  })

  it('count as work from their lead on, before those of the own tenant and beside those of others', () => {
    const slots = new ReturnSlots({ showRatioFirst: 1 })
    slots.give(0, ask('x', 10 * SECOND, { cost: 300 }))
    expect(slots.expected(10 * SECOND - leadUs - 1, 'pool', newcomer('a'))).toBeUndefined()
    expect(slots.expected(10 * SECOND - leadUs, 'pool', newcomer('a'))).toEqual({ cost: 300, ownCost: 300 })
    expect(slots.expected(10 * SECOND, 'pool', newcomer('b')), 'no more than its turn').toEqual({
      cost: 100,
      ownCost: 0,
    })
    expect(slots.expected(10 * SECOND, 'elsewhere', newcomer('a'))).toBeUndefined()
    slots.takeUp('x', true, false)
    expect(slots.expected(10 * SECOND, 'pool', newcomer('a'))).toBeUndefined()
  })

  it('are in the order in which they were given, none sooner than its lead, none beyond the horizon', () => {
    const slots = new ReturnSlots()
    expect(slots.give(0, ask('x', 0))?.dueAt).toBe(leadUs)
    expect(slots.give(0, ask('y', 9 * SECOND))?.dueAt).toBe(9 * SECOND)
    expect(slots.give(0, ask('z', 3 * SECOND))?.dueAt).toBe(9 * SECOND)
    expect(slots.give(0, ask('late', horizonUs + 1))).toBeUndefined()
    expect(slots.give(0, ask('never', Number.POSITIVE_INFINITY))).toBeUndefined()
    expect(slots.give(0, ask('no time', Number.NaN))).toBeUndefined()
    expect(slots.give(0, ask('no cost', SECOND, { cost: Number.NaN }))).toBeUndefined()
    expect(slots.counts).toMatchObject({ given: 3, none: 4 })
  })

  it('begin anew when nobody of the lane has one any more', () => {
    const slots = new ReturnSlots()
    slots.give(0, ask('x', 50 * SECOND))
    // The overload is over, and who has the slot is admitted before its time.
    slots.takeUp('x', false, true)
    expect(slots.give(0, ask('y', 3 * SECOND))?.dueAt).toBe(3 * SECOND)
  })

  it('are not for what is much larger than usual', () => {
    const slots = new ReturnSlots()
    for (let i = 0; i < 500; i++) slots.admitted(0, 'lane', 100)
    for (let i = 0; i < 500; i++) slots.admitted(0, 'another', 1)
    expect(slots.give(0, ask('large', SECOND, { cost: 125 }))).toBeUndefined()
    expect(slots.give(0, ask('usual', SECOND, { cost: 119 }))).toBeDefined()
  })

  it('are worth little to a lane whose clients do not come', () => {
    const slots = new ReturnSlots()
    let now = 0
    for (let i = 0; i < 400; i++, now += SECOND) slots.give(now, ask(`${i}`, 3 * SECOND))
    expect(slots.expected(now, 'pool', newcomer('a'))?.cost).toBeLessThan(60)
    expect(slots.counts.missed).toBeGreaterThan(390)
    slots.dueFor(now + 60 * SECOND, 'nobody')
    slots.give(now + 90 * SECOND, ask('after a pause', 3 * SECOND))
    expect(slots.expected(now + 92 * SECOND, 'pool', newcomer('a'))?.cost).toBeLessThan(20)
  })

  it('are believed when most come', () => {
    const slots = new ReturnSlots()
    for (let i = 0; i < 40; i++) {
      slots.give(i * 10 * SECOND, ask(`${i}`, 3 * SECOND))
      slots.dueFor(i * 10 * SECOND + 3 * SECOND, `${i}`)
      if (i === 1) expect(slots.isBelieved('lane')).toBe(false)
      slots.takeUp(`${i}`, true, true)
    }
    expect(slots.isBelieved('lane')).toBe(true)
    expect(slots.isBelieved('another')).toBe(false)
  })

  it('are not due at once in a lane that has one turn after the other', () => {
    const slots = new ReturnSlots()
    for (let i = 0; i < 60; i++) slots.admitted(i * SECOND, 'lane', 100)
    const now = 60 * SECOND
    const first = slots.give(now, ask('x', 5 * SECOND))
    const second = slots.give(now, ask('y', 5 * SECOND))
    expect(second!.dueAt - first!.dueAt).toBeGreaterThan(0.9 * SECOND)
    expect(slots.give(now, ask('z', 5 * SECOND, { laneId: 'another' }))?.dueAt, 'a lane of its own').toBe(first?.dueAt)
  })

  it('count in a lane without habits by what all others do, until it has its own', () => {
    const slots = new ReturnSlots()
    const counted = (at: number): number => {
      slots.give(at, ask('new', 3 * SECOND, { laneId: 'new', share: pathOf('b') }))
      const { ownCost } = slots.expected(at + 3 * SECOND, 'pool', newcomer('b')) ?? { ownCost: 0 }
      slots.dueFor(at + 9 * SECOND, 'nobody')
      return ownCost
    }
    let now = 0
    for (let i = 0; i < 40; i++, now += 10 * SECOND) {
      slots.give(now, ask(`${i}`, 3 * SECOND))
      slots.dueFor(now + 3 * SECOND, `${i}`)
      slots.takeUp(`${i}`, true, true)
    }
    expect(counted(now), 'like all others').toBeGreaterThan(90)
    expect(slots.isBelieved('new'), 'one who stays away is no habit').toBe(true)
    for (let i = 1; i < 20; i++) counted(now + i * 10 * SECOND)
    expect(counted(now + 200 * SECOND)).toBeLessThan(20)
    expect(slots.isBelieved('new')).toBe(false)
    expect(slots.isBelieved('lane')).toBe(true)
  })

  it('are off with a share of 0, and bounded', () => {
    expect(new ReturnSlots({ share: 0 }).give(0, ask('x', SECOND))).toBeUndefined()
    const few = new ReturnSlots({ claimsMax: 2 })
    for (const name of ['x', 'y', 'z']) few.give(0, ask(name, SECOND))
    expect(few.count).toBe(2)
    const laned = new ReturnSlots({ laneClaimsMax: 1 })
    laned.give(0, ask('x', SECOND))
    expect(laned.give(0, ask('y', SECOND)), 'one lane').toBeUndefined()
    expect(laned.give(0, ask('z', SECOND, { laneId: 'other' })), 'the other has its own').toBeDefined()
    const same = new ReturnSlots()
    for (let i = 0; i < 20; i++) same.give(0, ask('x', SECOND))
    expect(same.count, 'of one body').toBe(RETURN_SLOT_DEFAULTS.sameClaimsMax)
    few.give(leadUs + graceUs + SECOND, ask('later', SECOND))
    expect(few.count, 'places of those who did not come are free').toBe(1)
  })

  it('give back all that they took, whatever happens', () => {
    const step = fc.record({
      gapUs: fc.integer({ min: 0, max: 4 * SECOND }),
      tenant: fc.constantFrom('a', 'b', 'c'),
      name: fc.constantFrom('x', 'y', 'z'),
      afterUs: fc.integer({ min: 0, max: 70 * SECOND }),
      cost: fc.double({ min: 0, max: 1_000, noNaN: true }),
      isBack: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const slots = new ReturnSlots({ costRatioMax: Number.POSITIVE_INFINITY })
        let now = 0
        for (const { gapUs, tenant, name, afterUs, cost, isBack } of steps) {
          now += gapUs
          if (isBack && slots.dueFor(now, `${tenant} ${name}`) !== undefined)
            slots.takeUp(`${tenant} ${name}`, true, true)
          else slots.give(now, ask(`${tenant} ${name}`, afterUs, { laneId: tenant, share: pathOf(tenant), cost }))
          const { given, kept, broken, early, missed } = slots.counts
          expect(slots.count).toBe(given - kept - broken - early - missed)
        }
        now += horizonUs + graceUs + 1
        expect(slots.expected(now, 'pool', newcomer('a'))).toBeUndefined()
        expect(slots.count).toBe(0)
        expect(slots.claimed(now, 'pool', newcomer('a'))).toEqual({ cost: 0, ownCost: 0 })
      }),
      { numRuns: 200 },
    )
  })
})
