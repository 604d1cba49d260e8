import type { Instant } from '../../base/clock.ts'
import { QuantileSketch } from '../../base/quantile.ts'
import type { Entry, Settled } from '../../domain/entry.ts'

/** Sums per tenant, for a view during a run and a short table after it. */
export interface TenantTally {
  arrived: number
  completed: number
  shed: number
  failed: number
  cancelled: number
  /** Completed, but not on the full rung. */
  degraded: number
  /** Milliseconds. */
  ttftP50: number | undefined
  ttftP95: number | undefined
  /** The rung of most of the tenant's degraded answers. */
  rung: string | undefined
}

const TTFT_MS_MAX = 3_600_000
/** In effect all samples: nothing fades before a hundred million answers. */
const MEMORY_SAMPLES = 100_000_000

class Counts {
  arrived = 0
  completed = 0
  shed = 0
  failed = 0
  cancelled = 0
  readonly rungs = new Map<string, number>()
  readonly ttftMs = new QuantileSketch({ valueMax: TTFT_MS_MAX, memorySamples: MEMORY_SAMPLES })

  settled(entry: Settled): void {
    const { outcome, firstTokenAt, arrivedAt, rung } = entry
    if (outcome === 'completed') this.completed++
    else if (outcome === 'cancelled') this.cancelled++
    else if (outcome === 'failed' || outcome === 'blocked') this.failed++
    else this.shed++
    if (outcome === 'completed' && rung !== 'full') this.rungs.set(rung, (this.rungs.get(rung) ?? 0) + 1)
    if (firstTokenAt !== undefined) this.ttftMs.observe((firstTokenAt - arrivedAt) / 1_000)
  }

  view(): TenantTally {
    const rungs = [...this.rungs].toSorted((a, b) => b[1] - a[1])
    return {
      arrived: this.arrived,
      completed: this.completed,
      shed: this.shed,
      failed: this.failed,
      cancelled: this.cancelled,
      degraded: rungs.reduce((sum, [, count]) => sum + count, 0),
      ttftP50: this.ttftMs.quantile(0.5),
      ttftP95: this.ttftMs.quantile(0.95),
      rung: rungs[0]?.[0],
    }
  }
}

export class Tally {
  readonly #byTenant = new Map<string, Counts>()
  /** Failures and refusals, by code. */
  readonly reasons = new Map<string, number>()

  take(entry: Entry): void {
    if (entry.kind === 'arrived') this.#of(entry.tenantId).arrived++
    if (entry.kind !== 'settled') return
    this.#of(entry.tenantId).settled(entry)
    const code = entry.refusal?.code
    if (code !== undefined) this.reasons.set(code, (this.reasons.get(code) ?? 0) + 1)
  }

  get total(): {
    readonly arrived: number
    readonly completed: number
    readonly shed: number
    readonly failed: number
  } {
    const total = { arrived: 0, completed: 0, shed: 0, failed: 0 }
    for (const counts of this.#byTenant.values()) {
      total.arrived += counts.arrived
      total.completed += counts.completed
      total.shed += counts.shed
      total.failed += counts.failed
    }
    return total
  }

  tenant(id: string): TenantTally {
    return this.#of(id).view()
  }

  get tenantIds(): string[] {
    return [...this.#byTenant.keys()]
  }

  #of(id: string): Counts {
    let counts = this.#byTenant.get(id)
    if (counts === undefined) {
      counts = new Counts()
      this.#byTenant.set(id, counts)
    }
    return counts
  }
}

/**
 * The same for the last few seconds: a dozen slices of one second each; the oldest slice is dropped whole. A ticket is
 * counted when it arrives and again when it ends.
 */
const SLICE_US = 1_000_000

export class RecentTally {
  readonly #slices: Array<{ readonly second: number; readonly entries: Entry[] }> = []
  readonly #seconds: number

  constructor(seconds: number) {
    this.#seconds = seconds
  }

  take(entry: Entry): void {
    if (entry.kind !== 'arrived' && entry.kind !== 'settled') return
    const second = Math.floor(entry.at / SLICE_US)
    let slice = this.#slices.at(-1)
    if (slice === undefined || slice.second < second) {
      slice = { second, entries: [] }
      this.#slices.push(slice)
      while ((this.#slices[0]?.second ?? second) <= second - this.#seconds) this.#slices.shift()
    }
    slice.entries.push(entry)
  }

  /** Whole seconds before `now`, so that rates are exact. */
  view(now: Instant): Tally {
    const tally = new Tally()
    const from = Math.floor(now / SLICE_US) - this.#seconds
    for (const { second, entries } of this.#slices) {
      if (second >= from) for (const entry of entries) tally.take(entry)
    }
    return tally
  }
}
