import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../base/clock.ts'
import { type AutoscaleTerms, NO_AUTOSCALE } from '../../domain/autoscale.ts'
import { PoolScaler, type ScalerLook } from './pool-scaler.ts'

const TERMS: AutoscaleTerms = {
  ...NO_AUTOSCALE,
  writer: 'spillway',
  minWarm: 0,
  max: 4,
  idleToZeroUs: secondsToUs(120),
  coldStartUs: secondsToUs(30),
}

const lookOf = (more: Partial<ScalerLook> = {}): ScalerLook => ({
  offeredCost: 0,
  elapsedUs: secondsToUs(1),
  backlogCost: 0,
  queuedCount: 0,
  heldCount: 0,
  drainPerReplicaUs: 1e-6,
  readyCount: 0,
  workRatio: undefined,
  replicas: [],
  ...more,
})

const ready = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `r${i}`, isReady: true }))

describe('the scaler of a pool', () => {
  it('lets an idle pool sleep, and wakes it once however often it is asked', () => {
    const scaler = new PoolScaler(TERMS, 0)
    scaler.setOrdered(0, 1)
    const at = secondsToUs(121)
    expect(scaler.look(at, lookOf({ readyCount: 1, replicas: ready(1) }))).toMatchObject({
      desired: 0,
      isActive: false,
    })
    scaler.setOrdered(at, 0)
    scaler.look(at + 1, lookOf())
    expect(scaler.wake(at + 2)).toBe(1)
    scaler.setOrdered(at + 2, 1)
    for (let i = 3; i < 100; i++) expect(scaler.wake(at + i)).toBeUndefined()
  })

  it('counts what is on its way, and orders nothing twice', () => {
    const scaler = new PoolScaler({ ...TERMS, minWarm: 1 }, 0)
    scaler.setOrdered(0, 1)
    const first = scaler.look(secondsToUs(1), lookOf({ offeredCost: 3, readyCount: 1, replicas: ready(1) }))
    expect(first.desired).toBe(4)
    scaler.setOrdered(secondsToUs(1), first.desired)
    const next = scaler.look(secondsToUs(2), lookOf({ offeredCost: 3, readyCount: 1, replicas: ready(1) }))
    expect(next).toMatchObject({ desired: 4, current: 4, pendingCount: 3 })
  })

  it('learns its cold start from the order to the first ready report', () => {
    const scaler = new PoolScaler(TERMS, 0)
    scaler.setOrdered(0, 0)
    scaler.look(0, lookOf())
    scaler.setOrdered(secondsToUs(10), 2)
    const waking = { id: 'a', isReady: false }
    scaler.look(secondsToUs(20), lookOf({ replicas: [waking] }))
    expect(scaler.wakingUs(secondsToUs(20))).toBe(secondsToUs(20))
    scaler.look(secondsToUs(52), lookOf({ readyCount: 1, replicas: [{ id: 'a', isReady: true }] }))
    expect(scaler.view.coldStartUs).toBe(secondsToUs(42))
    expect(scaler.view.pendingCount).toBe(1)
  })

  it('learns from the listing where somebody else orders', () => {
    const scaler = new PoolScaler({ ...TERMS, writer: 'external' }, 0)
    scaler.look(0, lookOf())
    scaler.look(secondsToUs(5), lookOf({ replicas: [{ id: 'a', isReady: false }] }))
    expect(scaler.view.pendingCount).toBe(1)
    scaler.look(secondsToUs(30), lookOf({ readyCount: 1, replicas: [{ id: 'a', isReady: true }] }))
    expect(scaler.view).toMatchObject({ coldStartUs: secondsToUs(25), pendingCount: 0, current: 1 })
  })

  it('gives up an order that nothing came of', () => {
    const scaler = new PoolScaler(TERMS, 0)
    scaler.setOrdered(0, 0)
    scaler.look(0, lookOf())
    scaler.setOrdered(0, 2)
    expect(scaler.look(secondsToUs(89), lookOf()).pendingCount).toBe(2)
    expect(scaler.look(secondsToUs(91), lookOf()).pendingCount).toBe(0)
  })

  it('promises no replica where nobody would order one', () => {
    for (const terms of [{ writer: 'none' }, { isDryRun: true }] as const)
      expect(new PoolScaler({ ...TERMS, ...terms }, 0).wakingUs(1)).toBeUndefined()
    const failing = new PoolScaler(TERMS, 0)
    failing.isFailing = true
    expect(failing.wakingUs(1)).toBeUndefined()
  })
})

it('counts what was called back as pending no more, and what is ordered on top as more', () => {
  const scaler = new PoolScaler(TERMS, 0)
  const pending = (): number => scaler.look(secondsToUs(1), lookOf()).pendingCount
  scaler.setOrdered(0, 0)
  scaler.setOrdered(0, 4)
  expect(pending()).toBe(4)
  scaler.setOrdered(0, 1)
  expect(pending()).toBe(1)
  scaler.setOrdered(0, 3)
  expect(pending()).toBe(3)
})
