import { describe, expect, it } from 'vitest'
import type { Replica } from '../../domain/fleet.ts'
import { WorkMeter } from './work-meter.ts'

const replica = (id: string): Replica => ({ id, poolId: 'p', model: 'm', releaseId: 'm@1', region: 'here' })

describe('the work meter', () => {
  it('adds up work and the time for it over all replicas', () => {
    const meter = new WorkMeter()
    const [a, b] = [replica('a'), replica('b')]
    meter.report(0, a, 200_000)
    expect(meter.view()).toBeUndefined()
    meter.report(500_000, b, 0)
    meter.report(1_000_000, a, 500_000)
    expect(meter.view()).toEqual({ workUs: 300_000, workableUs: 1_000_000 })
    meter.report(1_500_000, b, 100_000)
    expect(meter.view()).toEqual({ workUs: 400_000, workableUs: 2_000_000 })
  })
  it('has no figure for engines that tell nothing, and starts over with an engine that was restarted', () => {
    const meter = new WorkMeter()
    const a = replica('a')
    for (let at = 0; at < 3; at++) meter.report(at, a, undefined)
    expect(meter.view()).toBeUndefined()
    meter.report(10, a, 900)
    meter.report(20, a, 1)
    expect(meter.view()).toBeUndefined()
    meter.report(30, a, 6)
    expect(meter.view()).toEqual({ workUs: 5, workableUs: 10 })
  })
})
