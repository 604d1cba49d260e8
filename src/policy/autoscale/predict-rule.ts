import type { Instant } from '../../base/clock.ts'
import type { PoolSeen } from '../../domain/autoscale.ts'
import { DemandForecast, type ForecastOptions } from './demand-forecast.ts'
import { HighestLately } from './highest-lately.ts'
import { replicasFor, withinBounds } from './recommend.ts'
import type { RuleTerms, ScalingRule } from './scaling-rule.ts'

/**
 * By predicted demand: up at once to what one cold start ahead will need, down by the highest need of the last cold start
 * and a quarter, and only when that is clearly less than what is there.
 *
 * A replica that is let go is not back for a cold start: so whatever was needed within the last one may be needed before
 * it could be back. The quarter is for starts that take longer than usual: nobody is called back just before they are
 * ready. Longer is dearer than it is worth, because what comes later can be ordered in time. Noise around a whole number
 * of replicas would still send one away and call it back; so down goes only what would be spare even if `spareRatio` more
 * were needed.
 *
 * Monotone: where more is offered all along, never fewer are wanted.
 * Example: cold start 60 s, need 4, 5, 4, 4 … : 5 at once, and 4 again 75 s after the last 5, if 4 replicas would carry a
 * twentieth more.
 */
export const PREDICT_DEFAULTS = {
  /** Cold starts over which the highest need counts. */
  downColdStarts: 1.25,
  /** Room that must be left over before a replica goes. */
  spareRatio: 0.05,
}

export type PredictOptions = typeof PREDICT_DEFAULTS

export class PredictRule implements ScalingRule {
  readonly #terms: RuleTerms
  readonly #options: PredictOptions
  readonly #forecast: DemandForecast
  readonly #spare = new HighestLately()

  constructor(terms: RuleTerms, options: Partial<PredictOptions & ForecastOptions> = {}) {
    this.#terms = terms
    this.#options = { ...PREDICT_DEFAULTS, ...options }
    this.#forecast = new DemandForecast(options)
  }

  get demandPerUs(): number {
    return this.#forecast.level
  }

  wanted(now: Instant, seen: PoolSeen, current: number): number {
    const { offeredCost: cost, elapsedUs, coldStartUs, backlogCost, drainPerReplicaUs } = seen
    this.#forecast.observe(now, { cost, elapsedUs, horizonUs: coldStartUs })
    const demandPerUs = this.#forecast.at(coldStartUs)
    const need = { demandPerUs, marginPerUs: this.#forecast.marginOn(demandPerUs), backlogCost, drainPerReplicaUs }
    const { spareRatio } = this.#options
    const up = withinBounds(replicasFor(need, this.#terms), this.#terms)
    const each = drainPerReplicaUs / (1 + spareRatio)
    this.#spare.observe(now, withinBounds(replicasFor({ ...need, drainPerReplicaUs: each }, this.#terms), this.#terms))
    if (up >= current) return up
    const highest = this.#spare.since(now - this.#options.downColdStarts * coldStartUs) ?? current
    return Math.min(current, Math.max(up, highest))
  }
}
