import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { NaiveDispatcher } from '../../../test/support/naive-dispatcher.ts'
import { nthSeed } from '../../../test/support/nth-seed.ts'
import { assert } from '../../base/assert.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import { BANDS } from '../../domain/tenant.ts'
import type { FairnessName } from '../fairness/fairness.ts'
import { FAIRNESS_NAMES } from '../fairness/make-fairness.ts'
import { FixedLimit } from '../limits/fixed.ts'
import type { QueuedPart } from './backlog-listener.ts'
import { DISPATCHER_DEFAULTS, type DispatcherOptions } from './dispatch-options.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect, Offer, Offered } from './offer.ts'

/** Any sequence of events, told to the dispatcher and to its naive twin: the effects must be the same, in order. */
type Step =
  | {
      readonly kind: 'offer'
      readonly isAgain: boolean
      readonly offer: Omit<Offer, 'ticketId' | 'arrivedAt'>
      readonly waitUs: number
    }
  | { readonly kind: 'ready' | 'withdraw' | 'release' | 'progress'; readonly which: number; readonly prompt: number }
  | { readonly kind: 'replica'; readonly which: number; readonly change: number }
  | { readonly kind: 'pass'; readonly us: number }
  | { readonly kind: 'news'; readonly which: number; readonly amount: number }

const TENANTS = [0, 1, 2].map((i) => makeTenant(`t${i}`, { orgId: `o${i % 2}`, weight: [1, 1, 3][i] as number }))
const KEYS = [0, 1, 2, 3].map((i) => makeKey(`k${i}`, `t${i % 3}`, i === 3 ? 2 : 1))

const offered = fc
  .record({
    key: fc.nat(3),
    band: fc.constantFrom(...BANDS),
    bid: fc.nat(3),
    prompt: fc.constantFrom(10, 100, 300, 700, 990),
    output: fc.constantFrom(5, 50, 200),
    high: fc.nat(100),
    isReady: fc.boolean(),
    isAgain: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    avoid: fc.option(fc.constantFrom('r0', 'r1'), { nil: undefined, freq: 1 }),
    waitUs: fc.constantFrom(0, 5, 20, 1_000_000),
  })
  .map((draw): Step => {
    const key = KEYS[draw.key] as (typeof KEYS)[number]
    const tenant = TENANTS[draw.key % 3] as (typeof TENANTS)[number]
    const estimate = makeEstimate(draw.prompt, draw.output, { outputTokensHigh: draw.output + draw.high })
    const facts = { poolId: 'pool', tenant, key, band: draw.band, bid: draw.bid, estimate, expiresAt: 0 }
    const avoidance = draw.isAgain && draw.avoid !== undefined ? { avoidReplicaId: draw.avoid } : {}
    const offer = { ...facts, isReady: draw.isReady, ...avoidance }
    return { kind: 'offer', isAgain: draw.isAgain, offer, waitUs: draw.waitUs }
  })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: offered },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constantFrom('ready', 'withdraw', 'release', 'release', 'progress'),
      which: fc.nat(30),
      prompt: fc.constantFrom(0, 200, 999),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replica'), which: fc.nat(2), change: fc.nat(6) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass'), us: fc.nat(12) }) },
)

/** What the twin knows nothing of: weights, tenants that move, and what engines report. */
const news: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('news'), which: fc.nat(5), amount: fc.nat(6) })

const optionsDrawn = fc.record({
  queueRequestsMax: fc.integer({ min: 1, max: 8 }),
  skipsMax: fc.integer({ min: 0, max: 4 }),
  depthMax: fc.integer({ min: 1, max: 5 }),
  engineUsMax: fc.constantFrom(3_000_000, 1e9),
})

class Run {
  readonly options: DispatcherOptions
  readonly real: Dispatcher
  readonly twin: NaiveDispatcher
  readonly offers = new Map<string, Offer>()
  readonly open = new Set<string>()
  readonly foreseen = new Set<string>()
  readonly leases: number[] = []
  readonly outputs = new Map<number, number>()
  readonly #observed = new Map<string, number>()
  #now = 0
  #ticketCount = 0

  constructor(
    drawn: { queueRequestsMax: number; skipsMax: number; depthMax: number; engineUsMax: number },
    fairness: FairnessName,
  ) {
    const lanes = { depthMax: drawn.depthMax, engineUsMax: drawn.engineUsMax, agingUsPerBid: 7 }
    const { queueRequestsMax, skipsMax } = drawn
    this.options = { ...DISPATCHER_DEFAULTS, queueRequestsMax, skipsMax, fairness, lanes }
    const count = ({ share, cost }: QueuedPart, sign: 1 | -1): void =>
      void this.#observed.set(share.tenant.id, (this.#observed.get(share.tenant.id) ?? 0) + sign * cost)
    this.real = new Dispatcher({
      options: this.options,
      listener: {
        joined: (_now, part) => count(part, 1),
        granted: (_now, part) => count(part, -1),
        left: (part) => count(part, -1),
        begun: () => {},
        ended: () => {},
        reweighed: () => {},
      },
    })
    this.real.addPool('pool')
    this.twin = new NaiveDispatcher(this.options)
    for (const id of ['r0', 'r1']) this.#addReplica(id)
  }

  /** Does one step on both; returns what each said. */
  take(step: Step): { readonly real: string; readonly twin: string } {
    switch (step.kind) {
      case 'offer': {
        const arrivedAt = this.#now
        const expiresAt = step.offer.band === 'offline' ? Number.POSITIVE_INFINITY : this.#now + step.waitUs
        const offer = { ...step.offer, ticketId: `n${this.#ticketCount++}`, arrivedAt, expiresAt }
        this.offers.set(offer.ticketId, offer)
        const hadKept = this.real.view().pools[0]?.keptReplicaIds.length !== 0
        const foreseen = this.real.noPlaceFor(offer.poolId, offer, offer.estimate, offer.isReady)
        const real = step.isAgain ? this.real.offerAgain(this.#now, offer) : this.real.offer(this.#now, offer)
        if (!step.isAgain) this.#compare(foreseen, hadKept, real)
        if (real.kind === 'queued') this.open.add(offer.ticketId)
        return this.#both(real, this.twin.offer(this.#now, offer, step.isAgain))
      }
      case 'ready': {
        const id = this.#pick([...this.open], step.which) ?? 'none'
        const known = this.offers.get(id)?.estimate
        const estimate = step.prompt === 0 || known === undefined ? undefined : { ...known, promptTokens: step.prompt }
        return this.#both(this.real.ready(this.#now, id, estimate), this.twin.ready(this.#now, id, estimate))
      }
      case 'withdraw': {
        const id = this.#pick([...this.open], step.which) ?? 'none'
        this.open.delete(id)
        return this.#both(this.real.withdraw(this.#now, id), this.twin.withdraw(this.#now, id))
      }
      case 'release': {
        const leaseId = this.#pick(this.leases, step.which)
        if (leaseId === undefined) return { real: '', twin: '' }
        this.leases.splice(this.leases.indexOf(leaseId), 1)
        const measured = { cost: step.prompt * 3, ending: 'finished', firstTokenUs: 5 } as const
        return this.#both(this.real.release(this.#now, leaseId, measured), this.twin.release(this.#now, leaseId))
      }
      case 'progress': {
        const leaseId = this.#pick(this.leases, step.which)
        // Never beyond the cautious prediction: what that does to KV room is not the twin's business.
        if (leaseId !== undefined) this.real.progress(this.#now, leaseId, 5)
        return { real: '', twin: '' }
      }
      case 'replica':
        return this.#changeReplica(`r${step.which}`, step.change)
      case 'pass': {
        this.#now += step.us
        return this.#both(this.real.onWakeup(this.#now), this.twin.onWakeup(this.#now))
      }
      case 'news':
        return this.#both(this.#hear(step.which, step.amount), [])
    }
  }

  /**
   * The look before an offer says what the offer then says. Two exceptions: a ticket without time to wait is the caller's
   * to judge, and where a replica is kept free for a lane, a ticket may be let pass that the offer refuses.
   */
  #compare(foreseen: NoPlace | undefined, hadKept: boolean, real: Offered): void {
    const said = real.kind === 'refused' ? real.code : undefined
    if (said === 'expired-on-arrival' || (hadKept && foreseen === undefined)) return
    expect(foreseen?.code).toBe(said)
    if (foreseen !== undefined) this.foreseen.add(foreseen.code)
  }

  assertLaws(): void {
    this.real.assertInvariants()
    const view = this.real.view()
    assert(view.queuedCount === this.open.size, 'what is queued is what has not ended')
    assert(view.pools[0]?.heldCount === this.leases.length, 'what is held is what was granted and not returned')
    for (const tenant of view.pools[0]?.tenants ?? []) {
      const observed = this.#observed.get(tenant.tenantId) ?? 0
      assert(Math.abs(tenant.queuedCost - observed) < 1e-6, 'the listener hears of every change')
    }
    const wakeupAt = this.real.nextWakeupAt() ?? Number.POSITIVE_INFINITY
    const earliest = Math.min(...[...this.open].map((id) => this.offers.get(id)?.expiresAt as number))
    assert(wakeupAt <= earliest, 'it wakes for the next that expires')
  }

  #hear(which: number, amount: number): readonly Effect[] {
    const tenantId = `t${which % 3}`
    if (which === 0) this.real.reweigh({ kind: 'org', orgId: 'o0', weight: amount === 0 ? undefined : amount })
    else if (which < 3) this.real.reweigh({ kind: 'tenant', tenantId, orgId: `o${amount % 3}`, weight: 1 + amount })
    else if (which === 3) this.real.reweigh({ kind: 'key', keyId: 'k3', weight: 1 + amount })
    else return this.real.report(this.#now, `r${which % 2}`, { sequences: amount, kvTokens: 150 * amount })
    return []
  }

  #addReplica(id: string): { readonly real: string; readonly twin: string } {
    const replica = { id, poolId: 'pool', model: '', releaseId: 'm@1', region: '' }
    const limit = new FixedLimit({ sequencesMax: 3 })
    const kvTokensMax = id === 'r0' ? 1_000 : 800
    const real = this.real.addReplica(this.#now, { replica, limit, kvTokensMax })
    return this.#both(real, this.twin.addReplica(this.#now, id, 3, kvTokensMax))
  }

  #changeReplica(id: string, change: number): { readonly real: string; readonly twin: string } {
    const isKnown = this.real.view().pools[0]?.replicas.some((replica) => replica.id === id) ?? false
    if (!isKnown) return this.#addReplica(id)
    if (change === 0) return this.#both(this.real.removeReplica(this.#now, id), this.twin.removeReplica(this.#now, id))
    const what =
      change < 4 ? { isReady: change > 1 } : { allowance: change === 6 ? Number.POSITIVE_INFINITY : change - 4 }
    return this.#both(this.real.replicaChanged(this.#now, id, what), this.twin.replicaChanged(this.#now, id, what))
  }

  #pick<T>(items: readonly T[], which: number): T | undefined {
    return items.length === 0 ? undefined : items[which % items.length]
  }

  #both(real: Offered | readonly Effect[], twin: Offered | readonly Effect[]): { real: string; twin: string } {
    for (const effect of 'kind' in real ? real.effects : real) {
      assert(this.open.delete(effect.ticketId), 'the wait of a ticket ends once')
      if (effect.kind === 'granted') this.leases.push(effect.lease.id)
    }
    return { real: tell(real), twin: tell(twin) }
  }
}

function tell(said: Offered | readonly Effect[]): string {
  if (!('kind' in said)) return said.map(tellEffect).join(', ')
  const code = said.kind === 'refused' ? `refused ${said.code}: ` : ''
  return code + said.effects.map(tellEffect).join(', ')
}

function tellEffect(effect: Effect): string {
  const what = effect.kind === 'granted' ? effect.lease.replica.id : effect.kind === 'evicted' ? effect.code : ''
  return `${effect.ticketId} ${effect.kind} ${what}`
}

const anyStep: fc.Arbitrary<Step> = fc.oneof({ weight: 8, arbitrary: step }, { weight: 1, arbitrary: news })

describe('after any sequence of events', () => {
  // Four times a hundred runs, so that none is long.
  test.each([1, 2, 3, 4])('first come, first served: it does what its naive twin does (%i)', (nth) => {
    fc.assert(
      fc.property(optionsDrawn, fc.array(step, { maxLength: 80, size: 'max' }), (drawn, steps) => {
        const run = new Run(drawn, 'fifo')
        for (const one of steps) {
          const said = run.take(one)
          expect(said.real).toBe(said.twin)
          run.assertLaws()
        }
        expect([...run.open].sort()).toEqual(run.twin.waitingIds())
      }),
      { numRuns: 100, seed: nthSeed(nth) },
    )
  })

  describe('who was passed over', () => {
    interface Asked {
      readonly key: number
      readonly prompt: number
      readonly output?: number
      readonly band?: Offer['band']
      readonly isReady?: boolean
      readonly isAgain?: boolean
    }
    const ask = ({ key, prompt, output = 5, band = 'standard', isReady = true, isAgain = false }: Asked): Step => {
      const tenant = TENANTS[key % 3] as (typeof TENANTS)[number]
      const facts = { poolId: 'pool', tenant, key: KEYS[key] as (typeof KEYS)[number], band, bid: 0, isReady }
      const offer = { ...facts, estimate: makeEstimate(prompt, output, { outputTokensHigh: output }), expiresAt: 0 }
      return { kind: 'offer', isAgain, offer, waitUs: 1_000_000 }
    }
    const change = (kind: 'ready' | 'release', which: number): Step => ({ kind, which, prompt: 0 })
    const start = (skipsMax: number): Run =>
      new Run({ queueRequestsMax: 8, skipsMax, depthMax: 5, engineUsMax: 1e9 }, 'fifo')

    test('and fits no replica that is left is told so before anybody goes', () => {
      const run = start(4)
      // The first goes to r0, where alone the second and the fourth would fit; the third stands behind the second.
      const asked = [0, 1, 1, 2].map((key, i) => ask({ key, prompt: i % 2 === 0 ? 10 : 990 }))
      for (const step of asked) run.take(step)
      const said = run.take({ kind: 'replica', which: 0, change: 0 })
      expect(said.real).toBe('n1 evicted fits-no-replica, n3 evicted fits-no-replica, n2 granted r1')
      expect(said.twin).toBe(said.real)
    })

    test('and is called back in vain has a replica kept free for it as before', () => {
      const run = start(0)
      const small = { key: 0, prompt: 10, band: 'interactive' } as const
      const steps = [
        ask({ key: 0, prompt: 700, output: 200, band: 'interactive' }),
        // r1 is full of three small ones, r0 has place for two more.
        ...[small, small, small, small].map(ask),
        ask({ ...small, band: 'offline', isReady: false }),
        // Both are passed over; room for either comes, and the first of them takes it.
        ask({ key: 1, prompt: 10, output: 200, band: 'interactive', isAgain: true }),
        ask({ key: 0, prompt: 10, isReady: false }),
        ask({ key: 0, prompt: 700, band: 'interactive', isAgain: true }),
        change('ready', 0),
        change('release', 0),
        change('ready', 0),
      ]
      for (const step of steps) run.take(step)
      // n8 was there before n7 was ready: what becomes free is kept for it.
      const said = run.take(change('release', 3))
      expect(said.real).toBe('n8 granted r0')
      expect(said.twin).toBe(said.real)
    })
  })

  test.each(FAIRNESS_NAMES)('%s: every law holds', (fairness) => {
    const foreseen = new Set<string>()
    fc.assert(
      fc.property(optionsDrawn, fc.array(anyStep, { maxLength: 80, size: 'max' }), (drawn, steps) => {
        const run = new Run(drawn, fairness)
        for (const one of steps) {
          run.take(one)
          expect(() => run.assertLaws()).not.toThrow()
        }
        for (const code of run.foreseen) foreseen.add(code)
      }),
      { numRuns: 100 },
    )
    // The look before an offer was put to the test: every reason came up.
    expect([...foreseen].sort()).toEqual(['fits-no-replica', 'lane-full', 'lane-work-full', 'queue-full'])
  })
})
