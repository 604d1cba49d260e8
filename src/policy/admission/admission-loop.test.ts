import { describe, expect, it } from 'vitest'
import { type LoopShape, runAdmissionLoop } from '../../../test/support/admission-loop.ts'

/** Predicted wait, drain rate, calibrated margin and audit acting on each other, in a pool with lopsided work. */
const loop = (over: Partial<LoopShape>) =>
  runAdmissionLoop({
    seed: 1,
    tenantCount: 50,
    load: 1.5,
    seconds: 60,
    rule: 'fair-share',
    isCalibrated: true,
    ...over,
  })

describe('admission loop', () => {
  it.each([
    ['200 small tenants at 1.5×', { tenantCount: 200, load: 1.5 }],
    ['200 small tenants at 3×', { tenantCount: 200, load: 3 }],
    ['ten tenants at 1.5×', { tenantCount: 10, load: 1.5 }],
    ['ten tenants, one sends 20 times as much', { tenantCount: 10, load: 2, heavyFactor: 20 }],
    ['long tickets', { meanCost: 4_000, patienceUs: 2_000_000 }],
  ] satisfies [string, Partial<LoopShape>][])('keeps its promise and the pool full: %s', (_, shape) => {
    const seen = loop(shape)
    expect(seen.lateRatio).toBeLessThan(0.05)
    expect(seen.goodput).toBeGreaterThan(0.95)
    expect(seen.falseRejectRatio).toBeLessThan(0.02)
  })

  it('does better than the own lane alone, at the same work done', () => {
    const fair = loop({ tenantCount: 200 })
    const own = loop({ tenantCount: 200, rule: 'own-lane' })
    expect(own.lateRatio).toBeGreaterThan(0.2)
    expect(fair.lateRatio).toBeLessThan(0.05)
  })

  it('does not let a noisy neighbour push light tenants out, as one queue for all would', () => {
    const shape = { tenantCount: 10, load: 2, heavyFactor: 20, patienceUs: 2_000_000 }
    expect(loop(shape).lightRefusedRatio).toBeLessThan(0.01)
    expect(loop({ ...shape, rule: 'whole-queue' }).lightRefusedRatio).toBeGreaterThan(0.2)
  })

  it('hardly refuses anybody below capacity', () => {
    const seen = loop({ load: 0.8 })
    expect(seen.admitted / seen.offered).toBeGreaterThan(0.99)
  })

  it('is the same for the same seed', () => {
    expect(loop({ seconds: 10 })).toEqual(loop({ seconds: 10 }))
  })
})
