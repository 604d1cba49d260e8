import { Histogram } from '../../base/histogram.ts'
import type { Settled } from '../../domain/entry.ts'
import { GAP_BUCKETS_US } from '../../domain/gaps.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Slo } from '../../domain/tenant.ts'

/** Counts and latencies of some tickets: of a tenant, of a band, of all. Times are kept in tenths of a millisecond. */
const UNIT_US = 100

export interface Latency {
  readonly mean: number | undefined
  readonly p50: number | undefined
  readonly p90: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

export interface StatsView {
  readonly requests: Readonly<Record<Outcome, number>> & { readonly arrived: number; readonly shed: number }
  /** Milliseconds. */
  readonly latency: { readonly ttft: Latency; readonly e2e: Latency; readonly itl: Latency; readonly wait: Latency }
  readonly goodput: { readonly requestsPerS: number; readonly tokensPerS: number; readonly ratio: number }
  readonly tokens: { readonly prompt: number; readonly cached: number; readonly output: number }
  /** Weighted tokens served. */
  readonly served: number
  readonly degraded: number
  /** Admitted tickets with the first token or the end after the promise, or never. */
  readonly late: number
  readonly admitted: number
  readonly lateRatio: number
}

export class Stats {
  readonly #outcomes: Record<Outcome, number> = {
    completed: 0,
    rejected: 0,
    expired: 0,
    evicted: 0,
    cancelled: 0,
    blocked: 0,
    failed: 0,
  }
  readonly #ttft = new Histogram()
  readonly #e2e = new Histogram()
  readonly #itl = new Histogram()
  readonly #wait = new Histogram()
  #arrived = 0
  #admitted = 0
  #late = 0
  #good = 0
  #goodTokens = 0
  #degraded = 0
  #promptTokens = 0
  #cachedTokens = 0
  #outputTokens = 0
  #served = 0

  observe(settled: Settled, slo: Slo, cost: number): void {
    this.#arrived++
    this.#outcomes[settled.outcome]++
    const { arrivedAt, firstTokenAt, grantedAt, admittedAt, usage } = settled
    this.#promptTokens += usage.promptTokens
    this.#cachedTokens += usage.cachedTokens
    this.#outputTokens += usage.outputTokens
    this.#served += cost
    if (admittedAt !== undefined) this.#admitted++
    if (settled.rung !== 'full' && settled.outcome === 'completed') this.#degraded++
    if (firstTokenAt !== undefined) this.#ttft.observe((firstTokenAt - arrivedAt) / UNIT_US)
    if (grantedAt !== undefined) this.#wait.observe((grantedAt - arrivedAt) / UNIT_US)
    if (settled.outcome === 'completed') this.#e2e.observe((settled.at - arrivedAt) / UNIT_US)
    if (settled.gaps !== undefined) observeGaps(this.#itl, settled.gaps)
    if (isLate(settled, slo)) this.#late++
    if (settled.outcome === 'completed' && isGood(settled, slo)) {
      this.#good++
      this.#goodTokens += usage.outputTokens
    }
  }

  get served(): number {
    return this.#served
  }

  view(durationS: number): StatsView {
    const { rejected, expired, evicted } = this.#outcomes
    return {
      requests: { ...this.#outcomes, arrived: this.#arrived, shed: rejected + expired + evicted },
      latency: {
        ttft: latencyOf(this.#ttft),
        e2e: latencyOf(this.#e2e),
        itl: latencyOf(this.#itl),
        wait: latencyOf(this.#wait),
      },
      goodput: {
        requestsPerS: this.#good / durationS,
        tokensPerS: this.#goodTokens / durationS,
        ratio: this.#arrived === 0 ? 1 : this.#good / this.#arrived,
      },
      tokens: { prompt: this.#promptTokens, cached: this.#cachedTokens, output: this.#outputTokens },
      served: this.#served,
      degraded: this.#degraded,
      late: this.#late,
      admitted: this.#admitted,
      lateRatio: this.#admitted === 0 ? 0 : this.#late / this.#admitted,
    }
  }
}

/** The promise was kept: first token, mean time between tokens, and the end. */
export function isGood(settled: Settled, slo: Slo): boolean {
  const { arrivedAt, firstTokenAt, lastTokenAt, usage, at } = settled
  if (firstTokenAt === undefined || lastTokenAt === undefined) return false
  if (settled.band !== 'offline' && firstTokenAt - arrivedAt > slo.ttftUs) return false
  if (at > settled.deadlineAt) return false
  const gaps = usage.outputTokens - 1
  return gaps < 1 || (lastTokenAt - firstTokenAt) / gaps <= slo.interTokenUs
}

/** Admitted and yet late: by its first token, by its end, or because it lost its place. */
export function isLate(settled: Settled, slo: Slo): boolean {
  if (settled.admittedAt === undefined) return false
  if (settled.outcome === 'expired' || settled.outcome === 'evicted') return true
  if (settled.outcome !== 'completed' || settled.firstTokenAt === undefined) return false
  const isFirstLate = settled.band !== 'offline' && settled.firstTokenAt - settled.arrivedAt > slo.ttftUs
  return isFirstLate || settled.at > settled.deadlineAt
}

/** A bucket of gaps counts at its upper bound; the highest, open one at the longest gap. */
function observeGaps(itl: Histogram, gaps: NonNullable<Settled['gaps']>): void {
  let total = 0
  for (let i = 0; i < gaps.counts.length; i++) total += gaps.counts[i] as number
  if (total === 0) return
  // The gaps of one answer are similar: if all are in one bucket, their mean is more exact than its bound.
  const mean = gaps.sumUs / total
  for (let i = 0; i < gaps.counts.length; i++) {
    const count = gaps.counts[i] as number
    if (count === 0) continue
    const upper = GAP_BUCKETS_US[i] ?? gaps.maxUs
    itl.observe((count === total ? mean : Math.min(upper, gaps.maxUs)) / UNIT_US, count)
  }
}

export function latencyOf(histogram: Histogram): Latency {
  const ms = (value: number | undefined): number | undefined =>
    value === undefined ? undefined : (value * UNIT_US) / 1_000
  return {
    mean: ms(histogram.mean),
    p50: ms(histogram.quantile(0.5)),
    p90: ms(histogram.quantile(0.9)),
    p95: ms(histogram.quantile(0.95)),
    p99: ms(histogram.quantile(0.99)),
  }
}
