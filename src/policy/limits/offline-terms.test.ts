import { describe, expect, it } from 'vitest'
import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import { ReplicaRoom } from '../dispatch/replica-room.ts'
import { FixedLimit } from './fixed.ts'
import { Ledger } from './ledger.ts'
import { ReportedLimit } from './reported.ts'

/** Offline turns have bounds of their own, and never more than all have. */
const estimate = { promptTokens: 100, cachedTokens: 0, outputTokens: 100, outputTokensHigh: 100 } as Estimate
const model = { meanTokenUs: (sequences: number) => 1_000 * sequences }
const promise = { ttftUs: 1_000_000, interTokenUs: 50_000 }

/** How many of them fit one after the other. */
function filled(fits: (ledger: Ledger) => boolean): number {
  const ledger = new Ledger()
  while (ledger.held < 1_000 && fits(ledger)) {
    ledger.hold(estimate)
    ledger.begin(estimate)
  }
  return ledger.held
}

describe('a limit with a step model', () => {
  const limit = new ReportedLimit({ model, promise, options: { aimRatio: 1 } })
  const offline = (interTokenUs?: number) => filled((load) => limit.fits(load, estimate, { interTokenUs, kvShare: 1 }))

  it('gives offline turns up to a time per token of their own', () => {
    expect(filled((load) => limit.fits(load, estimate))).toBe(50)
    expect(offline()).toBe(24)
    expect(offline(10_000)).toBe(10)
  })

  it('never gives them more than all have, and always the smallest number', () => {
    expect(offline(90_000)).toBe(50)
    expect(offline(1)).toBe(2)
  })

  it('leaves half of a step of unread prompts to those who come next', () => {
    const ledger = new Ledger()
    const terms = { interTokenUs: 49_000, kvShare: 1 }
    while (limit.fits(ledger, estimate, terms)) ledger.hold(estimate)
    expect(ledger.prefillTokens).toBe(1_100)
    expect(limit.fits(ledger, estimate)).toBe(true)
  })
})

describe('the room of a replica', () => {
  const replica = { id: 'r', poolId: 'p' } as Replica
  const roomOf = (kvShare: number) =>
    new ReplicaRoom(
      { replica, limit: new FixedLimit({ sequencesMax: 100 }), kvTokensMax: 2_000, offline: { kvShare } },
      0,
      0,
    )

  it('keeps offline turns to their share of the memory, and gives it back', () => {
    const room = roomOf(0.5)
    for (let n = 0; n < 5; n++) {
      expect(room.fits(estimate, 'offline')).toBe(true)
      room.hold(estimate, 'offline')
    }
    expect(room.fits(estimate, 'offline')).toBe(false)
    expect(room.fits(estimate, 'standard')).toBe(true)
    room.ledger.begin(estimate)
    room.drop(estimate, 'offline', 0)
    expect(room.fits(estimate, 'offline')).toBe(true)
  })

  it('takes an offline turn when nothing runs, however small its share', () => {
    expect(roomOf(0.01).fits(estimate, 'offline')).toBe(true)
  })
})
