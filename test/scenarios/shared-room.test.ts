import { describe, expect, it } from 'vitest'
import { drawHomes, playSharedRoom } from '../../bench/experiments/kit/shared-room-world.ts'

/** Law L7 for the fleet, and L2: one pool that four gateways share. `bench/experiments/shared-limits.ts` has the table. */
describe('a pool that four gateways share', () => {
  const base = { gatewayCount: 4, slots: 64, seconds: 30 }

  it.each([1, 2, 3])('is shared by weight between 20 tenants wherever they wait, seed %i', (seed) => {
    const tenants = drawHomes(seed, 20, 4)
    const scaled = playSharedRoom({ ...base, seed, tenants, way: 'room and weights' })
    expect(scaled.jain).toBeGreaterThan(0.995)
    expect(scaled.inFlightMax).toBeLessThanOrEqual(64)
    // Without scaled weights a tenant at four gateways has more.
    expect(playSharedRoom({ ...base, seed, tenants, way: 'room' }).jain).toBeLessThan(0.98)
  })

  it('is overrun by gateways that do not share it', () => {
    expect(playSharedRoom({ ...base, seed: 1, tenants: drawHomes(1, 20, 4), way: 'alone' }).inFlightMax).toBe(256)
  })
})
