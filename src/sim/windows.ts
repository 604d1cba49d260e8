import { Histogram } from '../base/histogram.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import type { Slo } from '../domain/tenant.ts'
import { latencyOf } from './stats.ts'

/**
 * What happened when: counts and percentiles by window of time. A ticket belongs to the window in which it was
 * admitted (or refused); one that expired or was evicted there counts as infinitely late. So "p95 in every window" is
 * about everybody who was let in, not about those who came through.
 */
const UNIT_US = 100

export interface WindowView {
  readonly atS: number
  readonly arrivals: number
  readonly admitted: number
  readonly shed: number
  readonly completed: number
  readonly failed: number
  readonly degraded: number
  /** Of the admitted, by rung. */
  readonly rungs: Readonly<Record<string, number>>
  readonly ttftP50: number | undefined
  readonly ttftP95: number | undefined
  /** Mean time between the tokens of an answer, at the 95th percentile of answers. */
  readonly itlP95: number | undefined
  /** First token ÷ promise at the 95th percentile: above 1 the promise was broken for one in twenty. */
  readonly ttftP95OfSlo: number | undefined
  readonly queued: number
  readonly utilisation: number
  readonly kv: number
}

interface Window {
  arrivals: number
  admitted: number
  shed: number
  completed: number
  failed: number
  degraded: number
  queued: number
  utilisation: number
  kv: number
  readonly rungs: Record<string, number>
  readonly ttft: Histogram
  readonly itl: Histogram
  readonly ofSlo: Histogram
}

export class Windows {
  readonly #windowUs: number
  readonly #windows: Window[] = []

  constructor(windowUs: number) {
    this.#windowUs = windowUs
  }

  arrived(at: number): void {
    this.#at(at).arrivals++
  }

  settled(entry: Settled, slo: Slo): void {
    const window = this.#at(entry.admittedAt ?? entry.arrivedAt)
    if (entry.outcome === 'completed') window.completed++
    else if (entry.outcome === 'failed') window.failed++
    else if (entry.outcome === 'rejected' || entry.outcome === 'expired' || entry.outcome === 'evicted') window.shed++
    if (entry.admittedAt === undefined) return
    window.admitted++
    window.rungs[entry.rung] = (window.rungs[entry.rung] ?? 0) + 1
    const gapCount = entry.usage.outputTokens - 1
    if (entry.gaps !== undefined && gapCount > 0) window.itl.observe(entry.gaps.sumUs / gapCount / UNIT_US)
    if (entry.rung !== 'full') window.degraded++
    if (entry.band === 'offline' || entry.outcome === 'cancelled' || entry.outcome === 'failed') return
    const ttftUs = entry.firstTokenAt === undefined ? Number.POSITIVE_INFINITY : entry.firstTokenAt - entry.arrivedAt
    window.ttft.observe(ttftUs / UNIT_US)
    window.ofSlo.observe((1_000 * ttftUs) / slo.ttftUs)
  }

  reported(entry: Extract<Entry, { kind: 'pool-reported' }>): void {
    const window = this.#at(entry.at)
    window.queued = Math.max(window.queued, entry.queuedCount)
  }

  engines(at: number, use: { readonly utilisation: number; readonly kv: number }): void {
    const window = this.#at(at)
    window.utilisation = use.utilisation
    window.kv = use.kv
  }

  view(): WindowView[] {
    return this.#windows.map((window, index) => {
      const { ttft, itl, ofSlo, ...counts } = window
      const ratio = ofSlo.quantile(0.95)
      return {
        atS: (index * this.#windowUs) / 1_000_000,
        ...counts,
        ttftP50: latencyOf(ttft).p50,
        ttftP95: latencyOf(ttft).p95,
        itlP95: latencyOf(itl).p95,
        ttftP95OfSlo: ratio === undefined ? undefined : ratio / 1_000,
      }
    })
  }

  #at(at: number): Window {
    const index = Math.floor(at / this.#windowUs)
    while (this.#windows.length <= index) {
      this.#windows.push({
        arrivals: 0,
        admitted: 0,
        shed: 0,
        completed: 0,
        failed: 0,
        degraded: 0,
        queued: 0,
        utilisation: 0,
        kv: 0,
        rungs: {},
        ttft: new Histogram(),
        itl: new Histogram(),
        ofSlo: new Histogram(),
      })
    }
    return this.#windows[index]!
  }
}
