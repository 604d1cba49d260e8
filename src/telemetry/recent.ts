import { ChurningMap } from '../base/churning-map.ts'
import { US_PER_S } from '../base/clock.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import type { Subscriber } from './journal.ts'

/**
 * The entries of recent tickets, so that `spillway explain REQUEST_ID` can print what happened and why. All live tickets
 * are kept, up to a bound; of the settled ones the oldest is forgotten first.
 *
 *     live ──settled──▶ kept      fifty a second that went as they should, and fifty others: refused, degraded, retried …
 *
 * At 5,000 requests a second a thousand tickets reach back a fifth of a second, too short to ask for one; fifty and
 * fifty a second reach back ten seconds, and tickets that went well do not push out those that did not. Below fifty a
 * second everything is kept. The bound saves time too: remembered entries outlive the young generation of the heap, and
 * copying those of every ticket took a quarter of the time of our own code.
 */
export interface RecentTicketsOptions {
  /** A thousand tickets of five entries are about 4 MB; as many may be live. */
  readonly ticketsMax?: number
  /** Retries are few; a ticket with more entries than this keeps its first entries and its newest one. */
  readonly entriesPerTicketMax?: number
  /** Settled tickets kept per second, of each of the two sorts. */
  readonly keptPerSecondMax?: number
  /** Called with the whole story of every ticket that ends. */
  readonly onSettled?: ((story: readonly Entry[], settled: Settled) => void) | undefined
}

export class RecentTickets implements Subscriber {
  readonly name = 'recent'
  readonly #ticketsMax: number
  readonly #entriesPerTicketMax: number
  /** Both maps are in order of arrival here: a Map keeps the order of insertion. */
  readonly #live = new ChurningMap<string, Entry[]>()
  readonly #kept = new ChurningMap<string, Entry[]>()
  readonly #ordinary: Allowance
  readonly #others: Allowance
  readonly #onSettled: RecentTicketsOptions['onSettled']

  constructor(options: RecentTicketsOptions = {}) {
    this.#ticketsMax = Math.max(1, options.ticketsMax ?? 1_000)
    this.#entriesPerTicketMax = Math.max(1, options.entriesPerTicketMax ?? 64)
    const perSecondMax = options.keptPerSecondMax ?? 50
    this.#ordinary = new Allowance(perSecondMax)
    this.#others = new Allowance(perSecondMax)
    this.#onSettled = options.onSettled
  }

  take(entry: Entry): void {
    const ticketId = 'ticketId' in entry ? entry.ticketId : undefined
    if (ticketId === undefined) return
    // A cost is closed up to a few seconds after the end: it begins no story of its own.
    const known = this.#live.get(ticketId) ?? this.#kept.get(ticketId)
    if (known === undefined && entry.kind === 'cost-closed') return
    const story = known ?? this.#begin(ticketId)
    if (story.length < this.#entriesPerTicketMax) story.push(entry)
    else story[story.length - 1] = entry
    if (entry.kind === 'settled') this.#settle(ticketId, story, entry)
  }

  /** The ticket's entries, oldest first; undefined when the ticket is unknown or forgotten. */
  storyOf(ticketId: string): readonly Entry[] | undefined {
    return this.#live.get(ticketId) ?? this.#kept.get(ticketId)
  }

  /** Ids of remembered tickets: settled ones first, then live ones, each oldest first. */
  ticketIds(): string[] {
    return [...this.#kept.keys(), ...this.#live.keys()]
  }

  #begin(ticketId: string): Entry[] {
    const story: Entry[] = []
    insert(this.#live, ticketId, story, this.#ticketsMax)
    return story
  }

  #settle(ticketId: string, story: Entry[], settled: Settled): void {
    if (!this.#live.delete(ticketId)) return
    this.#onSettled?.(story, settled)
    const allowance = isOrdinary(settled) ? this.#ordinary : this.#others
    if (allowance.take(settled.at)) insert(this.#kept, ticketId, story, this.#ticketsMax)
  }
}

/** The ticket got what it asked for, at the first attempt. */
function isOrdinary({ outcome, rung, attempts }: Settled): boolean {
  return outcome === 'completed' && rung === 'full' && attempts === 1
}

function insert(stories: ChurningMap<string, Entry[]>, ticketId: string, story: Entry[], sizeMax: number): void {
  if (stories.size >= sizeMax) stories.delete(stories.keys().next().value as string)
  stories.set(ticketId, story)
}

/** Allows this many in each second of the entries' own time. */
class Allowance {
  readonly #perSecondMax: number
  #secondEndsAt = Number.NEGATIVE_INFINITY
  #left = 0

  constructor(perSecondMax: number) {
    this.#perSecondMax = perSecondMax
  }

  take(at: number): boolean {
    if (at >= this.#secondEndsAt) {
      this.#secondEndsAt = at + US_PER_S
      this.#left = this.#perSecondMax
    }
    return this.#left-- > 0
  }
}
