import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect } from './offer.ts'
import { PoolAnswers } from './pool-answers.ts'

const TOKEN_US = 10_000

/** A dispatcher with one replica, and the leases that are out. */
class Desk {
  readonly dispatcher: Dispatcher
  readonly leases = new Map<string, number>()
  now = 0
  #count = 0

  constructor(slots: number) {
    this.dispatcher = new Dispatcher({ options: { outputTokenCost: 2 } })
    const replica = { id: 'r', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    this.dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: slots }) })
  }

  offer(tenantId: string, outputTokens: number): string {
    const tenant = makeTenant(tenantId)
    const ticketId = `${tenantId}-${this.#count++}`
    const facts = { ticketId, poolId: 'pool', tenant, key: makeKey(`${tenantId}-key`, tenantId), bid: 0 } as const
    const times = { arrivedAt: this.now, expiresAt: Number.POSITIVE_INFINITY, band: 'standard', isReady: true } as const
    const estimate = { ...makeEstimate(100, outputTokens), cost: 100 + 2 * outputTokens }
    this.#note(this.dispatcher.offer(this.now, { ...facts, ...times, estimate }).effects)
    return ticketId
  }

  begin(ticketId: string): void {
    this.#note(this.dispatcher.begin(this.now, this.leases.get(ticketId) as number))
  }

  end(ticketId: string, outputTokens: number): void {
    const leaseId = this.leases.get(ticketId) as number
    this.leases.delete(ticketId)
    const pace = { meanTokenUs: TOKEN_US, tokenCount: Math.max(0, outputTokens - 1), firstTokenUs: 1_000 }
    const measured = { cost: 100 + 2 * outputTokens, ending: 'finished', outputTokens, ...pace } as const
    this.#note(this.dispatcher.release(this.now, leaseId, measured))
  }

  #note(effects: readonly Effect[]): void {
    for (const effect of effects) if (effect.kind === 'granted') this.leases.set(effect.ticketId, effect.lease.id)
  }
}

describe('pool answers', () => {
  const answer = (outputTokens: number) =>
    ({ cost: 1, ending: 'finished', firstTokenUs: 5, outputTokens, meanTokenUs: 10, tokenCount: outputTokens }) as const

  test('answers that are alike have no spread, and few answers have none either', () => {
    const alike = new PoolAnswers()
    for (let i = 0; i < 20; i++) alike.observe(answer(256))
    expect(alike.spread).toBe(0)
    const few = new PoolAnswers()
    for (const tokens of [1, 100, 1_000]) few.observe(answer(tokens))
    expect(few.spread).toBe(0)
  })

  test('the spread is variance over squared mean, and nothing is learned from what nobody pays for', () => {
    const answers = new PoolAnswers()
    for (let i = 0; i < 50; i++) answers.observe(answer(i % 2 === 0 ? 100 : 300))
    expect(answers.spread).toBeCloseTo(0.25, 1)
    const { spread, tokenUs } = answers
    answers.observe({ ...answer(9_000), cost: 0, meanTokenUs: 1 })
    expect([answers.spread, answers.tokenUs]).toEqual([spread, tokenUs])
    expect(tokenUs).toBeCloseTo(10, 6)
  })
})

describe('charging ahead', () => {
  test('every law holds, and no lease is left in the heap, whatever comes when', () => {
    const step = fc.record({
      kind: fc.constantFrom('offer', 'begin', 'end', 'wait', 'progress'),
      who: fc.nat(2),
      tokens: fc.integer({ min: 1, max: 900 }),
    })
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 300 }), (steps) => {
        const desk = new Desk(4)
        for (const { kind, who, tokens } of steps) {
          const held = [...desk.leases.keys()]
          const ticketId = held[tokens % Math.max(1, held.length)]
          if (kind === 'offer') desk.offer(`t${who}`, tokens)
          else if (kind === 'wait') desk.now += tokens * TOKEN_US
          else if (ticketId === undefined) continue
          else if (kind === 'begin') desk.begin(ticketId)
          else if (kind === 'end') desk.end(ticketId, tokens)
          else desk.dispatcher.progress(desk.now, desk.leases.get(ticketId) as number, tokens)
          desk.dispatcher.assertInvariants()
        }
        for (let left = 2_000; desk.leases.size > 0 && left > 0; left--)
          desk.end([...desk.leases.keys()][0] as string, 7)
        expect(desk.leases.size).toBe(0)
        desk.dispatcher.assertInvariants()
      }),
      { numRuns: 60 },
    )
  })
})
