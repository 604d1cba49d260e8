import { describe, expect, it } from 'vitest'
import type { Outlook } from '../../domain/outlook.ts'
import { PEER_OUTLOOK_DEFAULTS, PeerOutlook } from './peer-outlook.ts'

const S = 1_000_000
const said = (over: Partial<Outlook> = {}): Outlook => ({
  readyReplicaCount: 4,
  waitUs: 100_000,
  prefillUsPerToken: 40,
  drainPerUs: 0.5,
  isShedding: false,
  ...over,
})

describe('the outlook of another region', () => {
  it('is nothing before the first news, and when they are old', () => {
    const outlook = new PeerOutlook()
    expect(outlook.readyReplicaCount(0)).toBe(0)
    expect(outlook.waitUs(0)).toBe(Number.POSITIVE_INFINITY)
    outlook.report(S, said())
    expect(outlook.readyReplicaCount(S + PEER_OUTLOOK_DEFAULTS.keepUs)).toBe(4)
    expect(outlook.readyReplicaCount(S + PEER_OUTLOOK_DEFAULTS.keepUs + 1)).toBe(0)
  })

  it('moves on with what we send, and the clock eats it: a thousand in one second do not see the same empty queue', () => {
    const outlook = new PeerOutlook()
    outlook.report(0, said())
    outlook.sent(50_000)
    expect(outlook.waitUs(0)).toBe(200_000)
    expect(outlook.waitUs(80_000)).toBe(120_000)
    expect(outlook.waitUs(S)).toBe(0)
    outlook.report(S, said({ waitUs: 7 }))
    expect(outlook.waitUs(S)).toBe(7)
  })

  it('stands back after a refusal for as long as was asked, within bounds', () => {
    const outlook = new PeerOutlook()
    outlook.failed(0)
    expect([outlook.isStandingBack(S / 2 - 1), outlook.isStandingBack(S / 2)]).toEqual([true, false])
    outlook.failed(0, S)
    expect([outlook.isStandingBack(S - 1), outlook.isStandingBack(S)]).toEqual([true, false])
    outlook.failed(0, 3_600 * S)
    expect([outlook.isStandingBack(2 * S - 1), outlook.isStandingBack(2 * S)]).toEqual([true, false])
  })

  it('learns the round trip down at once and up slowly, unless it was told', () => {
    const outlook = new PeerOutlook()
    outlook.report(0, said(), 90_000)
    expect(outlook.roundTripUs).toBe(90_000)
    outlook.report(0, said(), 70_000)
    outlook.report(0, said(), 150_000)
    expect(outlook.roundTripUs).toBe(80_000)
    const told = new PeerOutlook(30_000)
    told.report(0, said(), 90_000)
    expect(told.roundTripUs).toBe(30_000)
  })
})
