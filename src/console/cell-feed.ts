import { type Instant, secondsToUs, US_PER_MS, US_PER_S } from '../base/clock.ts'
import { Ring } from '../base/ring.ts'
import type { ConsoleFeed } from './console-feed.ts'
import type { ConsoleEvent, ConsoleParty, ConsoleView } from './console-view.ts'
import { addedCounts, type ConsoleSecond, mergedSeconds, mergedView } from './merge-views.ts'

/**
 * The feed of the cell: what this gateway sees, and what the other gateways report, as one view. Whoever carries reports
 * is asked elsewhere (`main/console-peers.ts`); a gateway whose report is older than `HEARD_US` is not in the sums, and
 * the view says how many of how many gateways are. Ids of events are this gateway's own: a viewer stays with one.
 *
 * Bounds: reports of `GATEWAYS_MAX` gateways, each read as far as this version understands it; 200 events.
 */
export interface ConsoleReport {
  /** The gateway's name, new with each start. */
  readonly gateway: string
  readonly view: ConsoleView
  /** Tenants that somebody looks at elsewhere, busy or not. */
  readonly watched: readonly ConsoleParty[]
  readonly seconds: readonly ConsoleSecond[]
}

/** What is wanted of other gateways: their views, with these tenants; or the last hour. */
export interface ConsoleWants {
  readonly what: 'view' | 'history'
  readonly tenants: readonly string[]
}

const HEARD_US = secondsToUs(4)
const GATEWAYS_MAX = 64
const EVENTS_KEPT = 200
const SECONDS_TOLD = 6
const WATCHED_MAX = 20
/** Parties of a report: more than are shown, so that sums over gateways name the right ones. */
const REPORTED_MAX = 100
const HISTORY_S = 3_600
/** Seconds are told this late, so that the reports of other gateways have them. */
const LATE_S = 2

export class CellFeed {
  readonly #own: ConsoleFeed
  readonly #gateway: string
  readonly #reports = new Map<string, { readonly report: ConsoleReport; readonly at: Instant; toldEvent: number }>()
  readonly #events = new Ring<ConsoleEvent>(EVENTS_KEPT)
  #lastEvent = 0
  #ownEvent = 0
  #gatewayCount = 1

  constructor(own: ConsoleFeed, gateway: string) {
    this.#own = own
    this.#gateway = gateway
  }

  get lastEvent(): number {
    return this.#lastEvent
  }

  /** What another gateway should know. */
  report(now: Instant, { what, tenants }: ConsoleWants): string {
    const history = this.#own.history()
    const report: ConsoleReport = {
      gateway: this.#gateway,
      view: this.#own.view(now, 0, REPORTED_MAX),
      watched: tenants.slice(0, WATCHED_MAX).map((name) => ({ name, counts: this.#own.countsOf(now, name) })),
      seconds: what === 'history' ? history : history.slice(-SECONDS_TOLD),
    }
    return JSON.stringify(report)
  }

  /** Takes in what other gateways told; `gatewayCount` is how many there are, this one included. */
  hear(now: Instant, texts: readonly string[], gatewayCount: number): void {
    for (const text of texts.slice(0, GATEWAYS_MAX)) {
      const report = readReport(text)
      if (report === undefined || report.gateway === this.#gateway) continue
      const known = this.#reports.get(report.gateway)
      // Events from before this gateway heard of the other one are told by that one's own history.
      const toldEvent = known?.toldEvent ?? report.view.events.at(-1)?.id ?? 0
      this.#reports.set(report.gateway, { report, at: now, toldEvent })
    }
    for (const [gateway, { at }] of this.#reports) if (at <= now - HEARD_US) this.#reports.delete(gateway)
    this.#gatewayCount = Math.max(gatewayCount, 1 + this.#reports.size)
  }

  view(now: Instant, sinceEvent: number): ConsoleView {
    this.#gather(now)
    const own = this.#own.view(now, this.#own.lastEvent)
    const others = this.#heard(now).map(({ view }) => view)
    return { ...mergedView(own, others), ...this.#common(now), events: this.#eventsSince(sinceEvent) }
  }

  ofTenant(now: Instant, tenantId: string, sinceEvent: number): ConsoleView {
    this.#gather(now)
    const own = this.#own.ofTenant(now, tenantId)
    const heard = this.#heard(now)
    const elsewhere = heard.flatMap(({ watched }) => watched.filter(({ name }) => name === tenantId))
    const counts = addedCounts([own.total, ...elsewhere.map((party) => party.counts)])
    return {
      ...own,
      ...this.#common(now),
      total: counts,
      tenants: [{ name: tenantId, counts }],
      second: undefined,
      events: this.#eventsSince(sinceEvent).filter(({ tenant }) => tenant === tenantId),
    }
  }

  history(now: Instant): readonly ConsoleSecond[] {
    return mergedSeconds([this.#own.history(), ...this.#heard(now).map(({ seconds }) => seconds)], HISTORY_S)
  }

  #common(now: Instant): Pick<ConsoleView, 'second' | 'gateways'> {
    const heard = this.#heard(now)
    const gateways = { heard: 1 + heard.length, of: this.#gatewayCount }
    const seconds = mergedSeconds([this.#own.history().slice(-SECONDS_TOLD), ...heard.map((one) => one.seconds)], 60)
    const lateS = heard.length === 0 ? 0 : LATE_S
    const second = seconds.findLast(([at = 0]) => at <= now / US_PER_S - lateS)
    return { gateways, second }
  }

  #heard(now: Instant): readonly ConsoleReport[] {
    return [...this.#reports.values()].filter(({ at }) => at > now - HEARD_US).map(({ report }) => report)
  }

  /** Numbers events of all gateways as they are heard. */
  #gather(now: Instant): void {
    const fresh: ConsoleEvent[] = [...this.#own.eventsSince(this.#ownEvent)]
    this.#ownEvent = this.#own.lastEvent
    for (const heard of this.#reports.values()) {
      fresh.push(...heard.report.view.events.filter(({ id }) => id > heard.toldEvent))
      heard.toldEvent = Math.max(heard.toldEvent, heard.report.view.events.at(-1)?.id ?? 0)
    }
    for (const event of fresh.toSorted((a, b) => a.at - b.at))
      this.#events.push({ ...event, id: ++this.#lastEvent, at: Math.min(event.at, now / US_PER_MS) })
  }

  #eventsSince(id: number): readonly ConsoleEvent[] {
    return [...this.#events].filter((event) => event.id > id)
  }
}

/** Another gateway may be of another version: what has not the parts of a report is none. */
function readReport(text: string): ConsoleReport | undefined {
  try {
    const report = JSON.parse(text) as Partial<ConsoleReport> | null
    const lists = [
      report?.watched,
      report?.seconds,
      ...LISTS.map((name) => report?.view?.[name]),
      report?.view?.queue?.rows,
    ]
    const isReport = typeof report?.gateway === 'string' && lists.every((list) => Array.isArray(list))
    return isReport ? (report as ConsoleReport) : undefined
  } catch {
    return undefined
  }
}

const LISTS = ['total', 'pools', 'replicas', 'tenants', 'models', 'troubles', 'trials', 'events'] as const
