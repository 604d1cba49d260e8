import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'

/**
 * If nobody were degraded, would this tenant's share carry what it asks for?
 *
 * A short queue does not mean that the storm is over: on a deep rung the same requests cost half, the queue empties,
 * the ladder relaxes, the queue fills again. So the ladder also asks for the demand: the cost *in full* of everything
 * a tenant offered lately, admitted or not, against what fair sharing would give it. That is max-min fairness, found
 * by water-filling: the level θ at which Σ_j min(λ_j, w_j·θ) is what the pool can do (at 90 %, because a queue at
 * 100 % never ends); a tenant with λ_i ≤ w_i·θ gets all it asks for.
 *
 * A rate is forgotten over seconds and a tenant that offers nothing is forgotten whole; the level is computed on each
 * tick, in the order of tenants' arrival, so it is the same in every run. It does not see bursts shorter than its
 * memory; queues are there for those.
 *
 * Example: pool 100/s, so 90 to share; A asks 150, B 20, C 30, weights 1: θ = 40; B and C are satisfied (0.5 and
 * 0.75), A's demand is 150 ÷ 40 = 3.75.
 */
export const DEMAND_DEFAULTS = {
  /** Memory of the offered rate: a second smooths a client's burstiness, and a storm of 20× is forgotten in three. */
  memoryUs: 1_000_000,
  /** Share of the drain rate that is given out. */
  utilisationRatio: 0.9,
  /** Below this share of its last rate a silent tenant is forgotten: after about ten memories. */
  forgetRatio: 0.1,
}

export type DemandOptions = typeof DEMAND_DEFAULTS

interface Offer {
  weight: number
  /** Weighted tokens per microsecond at `at`. */
  rate: number
  at: Instant
}

export class Demand {
  readonly #options: DemandOptions
  readonly #offers = new Map<string, Offer>()
  #level = Number.POSITIVE_INFINITY

  constructor(options: Partial<DemandOptions> = {}) {
    this.#options = { ...DEMAND_DEFAULTS, ...options }
  }

  get tenantCount(): number {
    return this.#offers.size
  }

  /** A request arrived: what it would cost in full, whether or not it was taken. */
  observe(now: Instant, offered: { readonly tenantId: string; readonly weight: number; readonly cost: number }): void {
    assert(offered.weight > 0, 'a weight is above zero')
    const { memoryUs } = this.#options
    const offer = this.#offers.get(offered.tenantId)
    if (offer === undefined) {
      this.#offers.set(offered.tenantId, { weight: offered.weight, rate: offered.cost / memoryUs, at: now })
      return
    }
    offer.rate = this.#rateAt(now, offer) + offered.cost / memoryUs
    offer.weight = offered.weight
    offer.at = now
  }

  /** On each tick: what the pool can do, in weighted tokens per microsecond. */
  settleLevel(now: Instant, drainPerUs: number): void {
    const asked: { readonly ratio: number; readonly rate: number; readonly weight: number }[] = []
    let weightLeft = 0
    for (const [tenantId, offer] of this.#offers) {
      const rate = this.#rateAt(now, offer)
      if (rate < this.#options.forgetRatio * offer.rate) {
        this.#offers.delete(tenantId)
        continue
      }
      asked.push({ ratio: rate / offer.weight, rate, weight: offer.weight })
      weightLeft += offer.weight
    }
    asked.sort((a, b) => a.ratio - b.ratio)
    let capacityLeft = drainPerUs * this.#options.utilisationRatio
    this.#level = Number.POSITIVE_INFINITY
    for (const { ratio, rate, weight } of asked) {
      if (ratio * weightLeft > capacityLeft) {
        this.#level = capacityLeft / weightLeft
        return
      }
      capacityLeft -= rate
      weightLeft -= weight
    }
  }

  /** Demand ÷ share: at most 1 when fair sharing would carry it in full. */
  of(now: Instant, tenantId: string): number {
    const offer = this.#offers.get(tenantId)
    if (offer === undefined) return 0
    const entitled = offer.weight * this.#level
    return entitled === 0 ? Number.POSITIVE_INFINITY : this.#rateAt(now, offer) / entitled
  }

  /** A quotient instead of an exponential, as everywhere: bit for bit the same (see base/ewma.ts). */
  #rateAt(now: Instant, offer: Offer): number {
    const { memoryUs } = this.#options
    return (offer.rate * memoryUs) / (memoryUs + Math.max(0, now - offer.at))
  }
}
