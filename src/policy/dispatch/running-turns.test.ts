import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'

function poolOf(replicas: number, slots: number, kvTokensMax = Number.POSITIVE_INFINITY) {
  const dispatcher = new Dispatcher({})
  for (let i = 0; i < replicas; i++) {
    const replica = { id: `r${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: slots }), kvTokensMax })
  }
  let count = 0
  const send = (times: number, tokens = 10): void => {
    const who = { tenant: makeTenant('a'), key: makeKey('a-key', 'a'), band: 'standard' as const }
    for (let i = 0; i < times; i++) {
      const estimate = makeEstimate(tokens, tokens)
      const offer = { ticketId: `t${count++}`, poolId: 'pool', ...who, bid: 0, estimate, arrivedAt: 0, expiresAt: 1e12 }
      dispatcher.offer(0, { ...offer, isReady: true })
    }
  }
  return { dispatcher, send }
}

describe('running turns', () => {
  it('are asked for only where somebody waits', () => {
    const { dispatcher, send } = poolOf(2, 4)
    send(8)
    expect(dispatcher.poolFacts('pool')?.runningTurns()).toBeUndefined()
    send(1)
    expect(dispatcher.poolFacts('pool')?.runningTurns()).toEqual({ running: 8, free: 0 })
  })

  it('leave as many free as memory allows, where slots are plenty', () => {
    // Each holds 600 of 1,000: a second does not fit, and two thirds of one would.
    const { dispatcher, send } = poolOf(1, 100, 1_000)
    send(2, 300)
    const turns = dispatcher.poolFacts('pool')?.runningTurns()
    expect(turns?.running).toBe(1)
    expect(turns?.free).toBeCloseTo(2 / 3, 9)
  })

  it('are counted at a few replicas, for all', () => {
    const { dispatcher, send } = poolOf(40, 2)
    send(81)
    expect(dispatcher.poolFacts('pool')?.runningTurns()).toEqual({ running: 80, free: 0 })
  })
})
