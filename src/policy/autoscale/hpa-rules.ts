import { type Instant, secondsToUs } from '../../base/clock.ts'
import type { PoolSeen } from '../../domain/autoscale.ts'
import { HighestLately } from './highest-lately.ts'
import { withinBounds } from './recommend.ts'
import type { RuleTerms, ScalingRule } from './scaling-rule.ts'

/**
 * What would Kubernetes' HorizontalPodAutoscaler do? For comparison: its algorithm with its defaults, on the length of
 * the queue or on utilisation.
 *
 *   desired = ⌈replicas · metric ÷ target⌉, not within a tolerance of a tenth; every 15 s
 *
 * Up: by four or to twice as many in 15 s, whichever is more. Down: the highest desired number of the last 300 s. The
 * metric is a mean over ready replicas; when it asks for more, those without a metric (not ready yet, or not when metrics
 * were collected) count with zero, and when it asks for less, with the target: so pending ones damp both ways.
 *
 * Metrics are collected every 15 s, at other moments than they are read: they are 0 to 15 s old, here 7. Utilisation is the
 * mean since they were collected before, as metrics-server tells it; the queue is a gauge. It is what waits and what runs;
 * what waits alone is zero as soon as there is capacity enough: the autoscaler would take all of it away again, and be
 * several times as late for more replicas.
 *
 * Deliberately not: no metric of demand, because what is refused is in neither queue nor utilisation.
 * Example: 4 replicas, 120 requests there, target 20 each: 30 ÷ 20 · 4 = 6.
 */
const SYNC_US = secondsToUs(15)
const COLLECT_US = secondsToUs(15)
/** Age of a metric when it is read. */
const METRIC_AGE_US = secondsToUs(7)
const DOWN_US = secondsToUs(300)
const TOLERANCE = 0.1
const UP_COUNT = 4

export class HpaRule implements ScalingRule {
  readonly #terms: RuleTerms
  readonly #metric: 'queue' | 'work'
  readonly #metricAgeUs: number
  readonly #highest = new HighestLately()
  #syncedAt: Instant = Number.NEGATIVE_INFINITY
  #wanted: number | undefined
  #demandPerUs = 0
  #collectedAt: Instant = Number.NEGATIVE_INFINITY
  /** As last collected: the mean of those replicas that were ready then. */
  #collected = { mean: 0, count: 0 }
  /** Utilisation times time, and time, since it was last collected. */
  #work = 0
  #workUs = 0

  constructor(terms: RuleTerms, metric: 'queue' | 'work', metricAgeUs = METRIC_AGE_US) {
    this.#terms = terms
    this.#metric = metric
    this.#metricAgeUs = metricAgeUs
  }

  get demandPerUs(): number {
    return this.#demandPerUs
  }

  wanted(now: Instant, seen: PoolSeen, current: number): number {
    if (seen.elapsedUs > 0) this.#demandPerUs = seen.offeredCost / seen.elapsedUs
    if (seen.workRatio !== undefined) {
      this.#work += seen.workRatio * seen.elapsedUs
      this.#workUs += seen.elapsedUs
    }
    this.#collect(now, seen)
    if (now - this.#syncedAt < SYNC_US) return this.#wanted ?? current
    this.#syncedAt = now
    const asked = this.#asked(seen, current)
    this.#highest.observe(now, asked)
    const stable = Math.max(asked, this.#highest.since(now - DOWN_US) ?? asked)
    const upMax = Math.max(current + UP_COUNT, 2 * current)
    this.#wanted = withinBounds(asked > current ? Math.min(asked, upMax) : Math.min(current, stable), this.#terms)
    return this.#wanted
  }

  #collect(now: Instant, { queuedCount, heldCount, readyCount }: PoolSeen): void {
    if (now - this.#collectedAt < COLLECT_US) return
    // The first look reads what it collects; from then on what is read has an age.
    const isFirst = this.#collectedAt === Number.NEGATIVE_INFINITY
    this.#collectedAt = isFirst ? now - this.#metricAgeUs : now
    const workRatio = this.#workUs > 0 ? this.#work / this.#workUs : 0
    this.#work = 0
    this.#workUs = 0
    const sum = this.#metric === 'queue' ? queuedCount + heldCount : workRatio * readyCount
    this.#collected = { mean: sum / Math.max(1, readyCount), count: readyCount }
  }

  #asked({ queuedCount, readyCount }: PoolSeen, current: number): number {
    // Nobody is there to be measured: what waits asks for one.
    if (readyCount === 0) return Math.max(current, queuedCount > 0 ? 1 : 0)
    const target = this.#metric === 'queue' ? this.#terms.queueTarget : this.#terms.utilisationRatio
    // Whoever became ready since has no metric yet, as those that are not ready.
    const measured = Math.min(this.#collected.count, readyCount)
    if (measured === 0) return current
    const ratio = this.#collected.mean / target
    if (Math.abs(ratio - 1) <= TOLERANCE) return current
    const pending = Math.max(0, current - measured)
    const damped = (ratio * measured + (ratio > 1 ? 0 : pending)) / Math.max(1, current)
    if (ratio > 1 !== damped > 1 || Math.abs(damped - 1) <= TOLERANCE) return current
    return Math.ceil(damped * current - 1e-9)
  }
}
