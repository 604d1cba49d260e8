import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import type { CellFeed, ConsoleWants } from '../console/cell-feed.ts'
import type { LiveCell } from './live-cell.ts'
import type { LiveSharing } from './live-sharing.ts'

/**
 * Who carries the console's reports between gateways? Those on one PostgreSQL ask each other through it. Others that
 * share limits, in Redis or through the supervisor of their host, tell each other under a topic of the lease store: a
 * few bytes while nobody looks anywhere, a report while somebody does. A gateway that is the only one asks nobody.
 */
export interface ConsolePeers {
  /** Brings what the other gateways have to the feed, or as much of it as comes in time. Never throws. */
  ask(wants: ConsoleWants): Promise<void>
  close(): void
}

interface PeerParts {
  readonly clock: Clock
  readonly feed: CellFeed
  readonly cell: Pick<LiveCell, 'askOthers' | 'onAsked' | 'otherCount' | 'isShared'>
  readonly sharing: Pick<LiveSharing, 'tell'>
}

const KIND = 'console'

export function makeConsolePeers(parts: PeerParts): ConsolePeers {
  const { cell, sharing } = parts
  if (cell.isShared) return askingPeers(parts)
  if (sharing.tell !== undefined) return new TellingPeers(parts, sharing.tell)
  return { ask: () => Promise.resolve(), close: () => {} }
}

function askingPeers({ clock, feed, cell }: PeerParts): ConsolePeers {
  cell.onAsked(KIND, (body) => feed.report(clock.now(), wantsIn(body) ?? VIEW))
  return {
    async ask(wants) {
      if (cell.otherCount() === 0) return feed.hear(clock.now(), [], 1)
      const answers = await cell.askOthers(KIND, wants, () => false)
      feed.hear(clock.now(), answers, 1 + cell.otherCount())
    },
    close: () => {},
  }
}

const VIEW: ConsoleWants = { what: 'view', tenants: [] }
const TENANTS_MAX = 20

/** What somebody wants, as another gateway spelled it. */
function wantsIn(body: unknown): ConsoleWants | undefined {
  const { what, tenants } = (body ?? {}) as { readonly what?: unknown; readonly tenants?: unknown }
  if ((what !== 'view' && what !== 'history') || !Array.isArray(tenants)) return undefined
  return { what, tenants: tenants.filter((one) => typeof one === 'string').slice(0, TENANTS_MAX) }
}

/** Texts in the lease store live for `sharing.ttlMs`, a second by default. */
const TELL_US = msToUs(400)
/** What is wanted, is told for this long after it was asked for last. */
const WANTED_US = secondsToUs(3)

interface Wanted {
  readonly wants: ConsoleWants
  readonly at: Instant
}

interface ToldText {
  readonly wants?: unknown
  readonly report?: unknown
}

class TellingPeers implements ConsolePeers {
  readonly #parts: PeerParts
  readonly #tell: NonNullable<LiveSharing['tell']>
  #here: Wanted | undefined
  #elsewhere: Wanted | undefined
  #cancel: CancelTimer | undefined
  #isClosed = false

  constructor(parts: PeerParts, tell: NonNullable<LiveSharing['tell']>) {
    this.#parts = parts
    this.#tell = tell
    void this.#beat()
  }

  async ask(wants: ConsoleWants): Promise<void> {
    this.#here = { wants, at: this.#parts.clock.now() }
    await this.#exchange()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
  }

  async #beat(): Promise<void> {
    await this.#exchange()
    if (this.#isClosed) return
    const { clock } = this.#parts
    this.#cancel = clock.at(clock.now() + TELL_US, () => void this.#beat())
  }

  async #exchange(): Promise<void> {
    const { clock, feed } = this.#parts
    const now = clock.now()
    const isFresh = (wanted: Wanted | undefined): wanted is Wanted =>
      wanted !== undefined && wanted.at > now - WANTED_US
    const told = {
      ...(isFresh(this.#here) && { wants: this.#here.wants }),
      ...(isFresh(this.#elsewhere) && { report: feed.report(now, this.#elsewhere.wants) }),
    }
    const heard = await this.#tell(KIND, JSON.stringify(told))
    if (heard === undefined || this.#isClosed) return
    const reports: string[] = []
    for (const text of heard.texts) {
      const { wants, report } = read(text)
      const wanted = wantsIn(wants)
      if (wanted !== undefined) this.#elsewhere = { wants: wanted, at: clock.now() }
      if (typeof report === 'string') reports.push(report)
    }
    feed.hear(clock.now(), reports, heard.gatewayCount)
  }
}

function read(text: string): ToldText {
  try {
    return (JSON.parse(text) ?? {}) as ToldText
  } catch {
    return {}
  }
}
