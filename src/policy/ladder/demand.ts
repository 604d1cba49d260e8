import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { Tenant } from '../../domain/tenant.ts'

/**
 * If nobody were degraded, would this tenant's share carry what it asks for?
 *
 * A short queue does not mean that the storm is over: on a deep rung the same requests cost half, the queue empties,
 * the ladder relaxes, the queue fills again. So the ladder also asks for the demand: the cost *in full* of everything
 * a tenant offered lately, admitted or not, against what fair sharing would give it. That is max-min fairness, found
 * by water-filling: the level θ at which Σ_j min(λ_j, w_j·θ) is what the pool can do (at 90 %, because a queue at
 * 100 % never ends); a tenant with λ_i ≤ w_i·θ gets all it asks for.
 *
 * Shares are a tree (`fairness/tree-share.ts`), and so is the filling. A tenant whose org has no weight of its own stands
 * among all, with its own weight; an org with one stands there for its tenants, with what they ask for together, and
 * what it gets is filled into them in the same way: what one of them leaves over is its siblings' first.
 *
 * A rate is forgotten over seconds and a tenant that offers nothing is forgotten whole; the level is computed on each
 * tick, in the order of tenants' arrival, so it is the same in every run. It does not see bursts shorter than its
 * memory; queues are there for those.
 *
 * Example: pool 100/s, so 90 to share; A asks 150, B 20, C 30, weights 1: θ = 40; B and C are satisfied (0.5 and
 * 0.75), A's demand is 150 ÷ 40 = 3.75. Were B and C an org of weight 1: it asks for 50, and both levels are 45; inside
 * it B is satisfied with 20 and leaves C 25, so C's demand is 30 ÷ 25 = 1.2.
 */
export const DEMAND_DEFAULTS = {
  /** Memory of the offered rate: a second smooths a client's burstiness, and a storm of 20× is forgotten in three. */
  memoryUs: 1_000_000,
  /** Share of the drain rate that is given out. */
  utilisationRatio: 0.9,
  /** Below this share of its last rate a silent tenant is forgotten: after about ten memories. */
  forgetRatio: 0.1,
}

/** Below one by more than the rounding of a sum over millions of tenants: then the filling, too, would say infinity. */
const CLEARLY_ENOUGH = 1 - 1e-6

export type DemandOptions = typeof DEMAND_DEFAULTS

interface Offer {
  orgId: string
  weight: number
  /** Weight of the org, where it has one of its own. */
  orgWeight: number | undefined
  /** Weighted tokens per microsecond at `at`. */
  rate: number
  at: Instant
}

export class Demand {
  readonly #options: DemandOptions
  readonly #offers = new Map<string, Offer>()
  #level = Number.POSITIVE_INFINITY
  /** Levels inside the orgs that have a weight of their own. */
  #orgLevels = new Map<string, number>()

  constructor(options: Partial<DemandOptions> = {}) {
    this.#options = { ...DEMAND_DEFAULTS, ...options }
  }

  get tenantCount(): number {
    return this.#offers.size
  }

  /** A request arrived: what it would cost in full, whether or not it was taken. */
  observe(now: Instant, { tenant, cost }: { readonly tenant: AskingTenant; readonly cost: number }): void {
    const { id, orgId, weight, orgWeight } = tenant
    assert(weight > 0, 'a weight is above zero')
    const { memoryUs } = this.#options
    const offer = this.#offers.get(id)
    if (offer === undefined) {
      this.#offers.set(id, { orgId, weight, orgWeight, rate: cost / memoryUs, at: now })
      return
    }
    offer.rate = this.#rateAt(now, offer) + cost / memoryUs
    offer.orgId = orgId
    offer.weight = weight
    offer.orgWeight = orgWeight
    offer.at = now
  }

  /** On each tick: what the pool can do, in weighted tokens per microsecond. */
  settleLevel(now: Instant, drainPerUs: number): void {
    const capacity = drainPerUs * this.#options.utilisationRatio
    // An ordinary day: what all ask for together is there, and nothing has to be filled.
    if (this.#forgetSilent(now) <= capacity * CLEARLY_ENOUGH) {
      this.#level = Number.POSITIVE_INFINITY
      this.#orgLevels.clear()
      return
    }
    const among: Asked[] = []
    const orgs = new Map<string, { weight: number; rate: number; readonly tenants: Asked[] }>()
    for (const offer of this.#offers.values()) {
      const { orgId, weight, orgWeight } = offer
      const rate = this.#rateAt(now, offer)
      if (orgWeight === undefined) among.push({ rate, weight })
      else {
        const org = orgs.get(orgId) ?? { weight: orgWeight, rate: 0, tenants: [] }
        orgs.set(orgId, org)
        // Its tenants agree on it but for the moment of a reload; the last one to ask knows best.
        org.weight = orgWeight
        org.rate += rate
        org.tenants.push({ rate, weight })
      }
    }
    this.#level = levelOf([...among, ...orgs.values()], capacity)
    this.#orgLevels = new Map(
      Array.from(orgs, ([orgId, { weight, tenants }]) => [orgId, levelOf(tenants, weight * this.#level)]),
    )
  }

  /** Returns the rate of all who are not forgotten, together. */
  #forgetSilent(now: Instant): number {
    let total = 0
    for (const [tenantId, offer] of this.#offers) {
      const rate = this.#rateAt(now, offer)
      if (rate < this.#options.forgetRatio * offer.rate) this.#offers.delete(tenantId)
      else total += rate
    }
    return total
  }

  /** Demand ÷ share: at most 1 when fair sharing would carry it in full. */
  of(now: Instant, tenantId: string): number {
    const offer = this.#offers.get(tenantId)
    if (offer === undefined) return 0
    const level = offer.orgWeight === undefined ? this.#level : (this.#orgLevels.get(offer.orgId) ?? this.#level)
    const entitled = offer.weight * level
    return entitled === 0 ? Number.POSITIVE_INFINITY : this.#rateAt(now, offer) / entitled
  }

  /** A quotient instead of an exponential, as everywhere: bit for bit the same (see base/ewma.ts). */
  #rateAt(now: Instant, offer: Pick<Offer, 'rate' | 'at'>): number {
    const { memoryUs } = this.#options
    return (offer.rate * memoryUs) / (memoryUs + Math.max(0, now - offer.at))
  }
}

/** Who asks: its place in the tree of shares. */
type AskingTenant = Pick<Tenant, 'id' | 'orgId' | 'weight' | 'orgWeight'>

interface Asked {
  readonly rate: number
  readonly weight: number
}

/** The level θ at which Σ min(rate, weight · θ) is the capacity; Infinity when all can have what they ask for. */
function levelOf(asked: readonly Asked[], capacity: number): number {
  const byRatio = asked.map(({ rate, weight }) => ({ ratio: rate / weight, rate, weight }))
  byRatio.sort((a, b) => a.ratio - b.ratio)
  let weightLeft = asked.reduce((sum, { weight }) => sum + weight, 0)
  let capacityLeft = capacity
  for (const { ratio, rate, weight } of byRatio) {
    if (ratio * weightLeft > capacityLeft) return capacityLeft / weightLeft
    capacityLeft -= rate
    weightLeft -= weight
  }
  return Number.POSITIVE_INFINITY
}
