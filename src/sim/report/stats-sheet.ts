import type { Settled } from '../../domain/entry.ts'
import type { Slo } from '../../domain/tenant.ts'
import { Stats, type StatsView } from './stats.ts'

/**
 * Figures of some tickets, by tenant, band and bid: those of a whole run, or of a part of it. Sums only, so that memory
 * does not grow with their number.
 */
export interface SheetView extends StatsView {
  readonly tenants: Readonly<Record<string, StatsView>>
  readonly bands: Readonly<Record<string, StatsView>>
  /** Tickets with a bid, by amount. */
  readonly bids: Readonly<Record<string, StatsView>>
  readonly refusals: Readonly<Record<string, number>>
}

/** Most different bids that are distinguished: scenarios have a handful, live traffic may have any number. */
const BIDS_MAX = 32

export class StatsSheet {
  readonly everybody = new Stats()
  readonly #byTenant = new Map<string, Stats>()
  readonly #byBand = new Map<string, Stats>()
  readonly #byBid = new Map<string, Stats>()
  readonly #refusals = new Map<string, number>()

  observe(entry: Settled, slo: Slo, cost: number): void {
    this.everybody.observe(entry, slo, cost)
    statsOf(this.#byTenant, entry.tenantId).observe(entry, slo, cost)
    statsOf(this.#byBand, entry.band).observe(entry, slo, cost)
    if (entry.bid !== 0) this.#observeBid(String(entry.bid), entry, slo, cost)
    const code = entry.refusal?.code
    if (code !== undefined) this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
  }

  #observeBid(bid: string, entry: Settled, slo: Slo, cost: number): void {
    if (this.#byBid.has(bid) || this.#byBid.size < BIDS_MAX) statsOf(this.#byBid, bid).observe(entry, slo, cost)
  }

  view(durationS: number): SheetView {
    return {
      ...this.everybody.view(durationS),
      tenants: viewsOf(this.#byTenant, durationS),
      bands: viewsOf(this.#byBand, durationS),
      bids: viewsOf(this.#byBid, durationS),
      refusals: Object.fromEntries(this.#refusals),
    }
  }
}

function statsOf(by: Map<string, Stats>, name: string): Stats {
  let stats = by.get(name)
  if (stats === undefined) {
    stats = new Stats()
    by.set(name, stats)
  }
  return stats
}

function viewsOf(by: ReadonlyMap<string, Stats>, durationS: number): Record<string, StatsView> {
  return Object.fromEntries([...by].map(([name, stats]) => [name, stats.view(durationS)]))
}
