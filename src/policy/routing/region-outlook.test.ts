import { describe, expect, it } from 'vitest'
import type { Outlook } from '../../domain/outlook.ts'
import { PEER_OUTLOOK_DEFAULTS } from './peer-outlook.ts'
import { REGION_GATEWAYS_MAX, RegionOutlook } from './region-outlook.ts'

const MS = 1_000
const said = (over: Partial<Outlook> = {}): Outlook => ({
  readyReplicaCount: 4,
  waitUs: 100 * MS,
  prefillUsPerToken: 40,
  drainPerUs: 0.5,
  isShedding: false,
  ...over,
})

function twoGateways(): RegionOutlook {
  const region = new RegionOutlook()
  region.of('a').report(0, said({ waitUs: 300 * MS }), 10 * MS)
  region.of('b').report(0, said(), 20 * MS)
  return region
}

describe('the outlook of a region with several gateways', () => {
  it('is that of a region of which nothing is known, before a gateway reports', () => {
    const region = new RegionOutlook(7 * MS)
    expect(region.at(0).readyReplicaCount(0)).toBe(0)
    expect(region.at(0).roundTripUs).toBe(7 * MS)
    expect(region.at(0).isStandingBack(0)).toBe(false)
  })

  it('is that of the gateway that begins soonest, with what was sent to each', () => {
    const region = twoGateways()
    expect([region.at(0).waitUs(0), region.at(0).roundTripUs]).toEqual([100 * MS, 20 * MS])
    region.of('b').sent(150_000)
    expect([region.at(0).waitUs(0), region.at(0).roundTripUs]).toEqual([300 * MS, 10 * MS])
  })

  it('does not stand back when one gateway fails, but when both have', () => {
    const region = twoGateways()
    region.of('b').failed(0)
    expect([region.at(0).waitUs(0), region.at(0).isStandingBack(0)]).toEqual([300 * MS, false])
    region.of('a').failed(0)
    expect(region.at(0).isStandingBack(0)).toBe(true)
    const after = PEER_OUTLOOK_DEFAULTS.standBackUs
    expect(region.at(after).isStandingBack(after)).toBe(false)
  })

  it('passes over a gateway that does not answer, and one without a ready replica', () => {
    const region = twoGateways()
    region.of('b').report(0, undefined)
    expect(region.at(0)).toBe(region.of('a'))
    region.of('a').report(0, said({ readyReplicaCount: 0 }))
    // The last news of b are still fresh: whether it is alive, health says.
    expect(region.at(0)).toBe(region.of('b'))
    region.of('b').report(0, said())
    expect(region.at(0).isSilent).toBe(false)
  })

  it('remembers no more gateways than its bound, the oldest is forgotten', () => {
    const region = twoGateways()
    for (let i = 0; i < REGION_GATEWAYS_MAX - 1; i++) region.of(`more-${i}`)
    expect(region.of('b').readyReplicaCount(0)).toBe(4)
    expect(region.of('a').readyReplicaCount(0)).toBe(0)
  })
})
