import { Histogram } from '../../base/histogram.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Slo } from '../../domain/tenant.ts'
import { latencyOf } from './stats.ts'

/**
 * Counts and percentiles by window of time. A ticket belongs to the window in which it was admitted or refused; one
 * that expired or was evicted counts as infinitely late. So "p95 in every window" covers all admitted tickets, not only
 * those that completed.
 *
 * There are never more than `WINDOWS_MAX` windows: for a longer run their width is doubled until they suffice, so that
 * memory does not grow with the length of a run.
 */
const UNIT_US = 100

/** An hour and a half of five-second windows; more points than a plot has pixels. */
export const WINDOWS_MAX = 1_024

export interface WindowView {
  readonly atS: number
  readonly arrivals: number
  readonly admitted: number
  readonly shed: number
  readonly completed: number
  readonly failed: number
  readonly degraded: number
  /** Admitted tickets by rung. */
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
  /** Sums over the readings of the engines. */
  utilisation: number
  kv: number
  looks: number
  readonly rungs: Record<string, number>
  readonly ttft: Histogram
  readonly itl: Histogram
  readonly ofSlo: Histogram
}

/** Tickets of these outcomes say nothing about promises: nobody waited for an answer of theirs, or it broke. */
const UNTIMED: ReadonlySet<Settled['outcome']> = new Set(['cancelled', 'failed', 'blocked'])

export class Windows {
  #windowUs: number
  #windows: Window[] = []

  constructor(windowUs: number) {
    this.#windowUs = windowUs
  }

  /** The present width of the windows. */
  get windowUs(): number {
    return this.#windowUs
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
    if (entry.band === 'offline' || UNTIMED.has(entry.outcome)) return
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
    window.utilisation += use.utilisation
    window.kv += use.kv
    window.looks++
  }

  view(): WindowView[] {
    return this.#windows.map((window, index) => {
      const { ttft, itl, ofSlo, looks, utilisation, kv, ...counts } = window
      const ratio = ofSlo.quantile(0.95)
      return {
        atS: (index * this.#windowUs) / 1_000_000,
        ...counts,
        utilisation: utilisation / Math.max(1, looks),
        kv: kv / Math.max(1, looks),
        ttftP50: latencyOf(ttft).p50,
        ttftP95: latencyOf(ttft).p95,
        itlP95: latencyOf(itl).p95,
        ttftP95OfSlo: ratio === undefined ? undefined : ratio / 1_000,
      }
    })
  }

  #at(at: number): Window {
    while (at >= this.#windowUs * WINDOWS_MAX) this.#widen()
    const index = Math.floor(at / this.#windowUs)
    while (this.#windows.length <= index) this.#windows.push(emptyWindow())
    return this.#windows[index]!
  }

  #widen(): void {
    const wide: Window[] = []
    for (const [index, window] of this.#windows.entries()) {
      const first = wide[index >> 1]
      if (first === undefined) wide.push(window)
      else addTo(first, window)
    }
    this.#windows = wide
    this.#windowUs *= 2
  }
}

function emptyWindow(): Window {
  return {
    arrivals: 0,
    admitted: 0,
    shed: 0,
    completed: 0,
    failed: 0,
    degraded: 0,
    queued: 0,
    utilisation: 0,
    kv: 0,
    looks: 0,
    rungs: {},
    ttft: new Histogram(),
    itl: new Histogram(),
    ofSlo: new Histogram(),
  }
}

function addTo(window: Window, next: Window): void {
  window.arrivals += next.arrivals
  window.admitted += next.admitted
  window.shed += next.shed
  window.completed += next.completed
  window.failed += next.failed
  window.degraded += next.degraded
  window.queued = Math.max(window.queued, next.queued)
  window.utilisation += next.utilisation
  window.kv += next.kv
  window.looks += next.looks
  for (const [rung, count] of Object.entries(next.rungs)) window.rungs[rung] = (window.rungs[rung] ?? 0) + count
  window.ttft.add(next.ttft)
  window.itl.add(next.itl)
  window.ofSlo.add(next.ofSlo)
}
