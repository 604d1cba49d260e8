import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'

const TOKEN_US = 10_000

/** One replica; answers of 500 + 2,000 tokens, P90 6,000, which take 10 ms a token. */
class LongDesk {
  readonly dispatcher = new Dispatcher({})
  readonly leases: number[] = []
  now = 0
  #count = 0

  constructor(kvTokensMax: number) {
    const replica = { id: 'r', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    this.dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 256 }), kvTokensMax })
  }

  offer(outputTokensHigh = 6_000): void {
    const ticketId = `t${this.#count++}`
    const facts = { ticketId, poolId: 'pool', tenant: makeTenant('a'), key: makeKey('k', 'a'), bid: 0 } as const
    const times = { arrivedAt: this.now, expiresAt: Number.POSITIVE_INFINITY, band: 'standard', isReady: true } as const
    const estimate = { ...makeEstimate(500, 2_000), outputTokensHigh, engineUs: 2_000 * TOKEN_US }
    const { effects } = this.dispatcher.offer(this.now, { ...facts, ...times, estimate })
    for (const effect of effects) if (effect.kind === 'granted') this.leases.push(effect.lease.id)
  }

  end(leaseId: number): void {
    const measured = { cost: 1, ending: 'finished', firstTokenUs: 1, meanTokenUs: undefined } as const
    for (const effect of this.dispatcher.release(this.now, leaseId, measured))
      if (effect.kind === 'granted') this.leases.push(effect.lease.id)
  }

  get kvTokens(): number {
    return this.dispatcher.view().pools[0]?.replicas[0]?.kvTokens ?? 0
  }
}

describe('growing answers', () => {
  test('sixteen long answers are given where eight would fill the memory with all that they may become', () => {
    const desk = new LongDesk(56_000)
    for (let i = 0; i < 20; i++) desk.offer()
    expect(desk.leases).toHaveLength(16)
    expect(desk.kvTokens).toBe(56_000)
    desk.dispatcher.assertInvariants()
  })

  test('answers that should have written more than is booked have taken the room before the next turn', () => {
    const desk = new LongDesk(1_000_000)
    for (let i = 0; i < 16; i++) desk.offer()
    desk.now = 1_999 * TOKEN_US
    desk.offer(2_000)
    expect(desk.kvTokens).toBe(56_000 + 2_500)
    desk.now = 4_000 * TOKEN_US
    desk.offer(2_000)
    // Each has 4,000 tokens and one, by its pace; room comes in sixteens, and a doubt of nearly 2,000 is left.
    const each = 500 + 2_000 + 2_016
    expect(desk.kvTokens).toBe(16 * each + 4 * (6_000 - 2_000 - 2_016) + 2 * 2_500)
  })

  test('an answer whose tokens are told grows as they come, and gives all of it back', () => {
    const desk = new LongDesk(20_000)
    desk.offer()
    desk.dispatcher.progress(0, desk.leases[0] as number, 1_900)
    expect(desk.kvTokens).toBe(6_500)
    desk.dispatcher.progress(0, desk.leases[0] as number, 7_000)
    expect(desk.kvTokens).toBe(500 + 2_000 + 5_008)
    desk.end(desk.leases[0] as number)
    expect(desk.kvTokens).toBe(0)
    desk.now = 1e12
    desk.offer(2_000)
    expect(desk.kvTokens).toBe(2_500)
    desk.dispatcher.assertInvariants()
  })

  test('one look grows no more than a bounded number, and the next ones the rest', () => {
    const desk = new LongDesk(10_000_000)
    for (let i = 0; i < 100; i++) desk.offer()
    const before = desk.kvTokens
    desk.now = 7_000 * TOKEN_US
    desk.offer(2_000)
    const afterOne = desk.kvTokens
    desk.offer(2_000)
    expect(afterOne - 2_500).toBeGreaterThan(before)
    // All have more than their P90 now: no doubt is left.
    expect(desk.kvTokens).toBe(100 * (500 + 2_000 + 5_008) + 2 * 2_500)
    expect(afterOne).toBeLessThan(desk.kvTokens - 2_500)
  })
})
