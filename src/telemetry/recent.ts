import type { Entry } from '../domain/entry.ts'
import type { Subscriber } from './journal.ts'

/**
 * What happened to this ticket? Keeps the entries of the tickets that were last heard of, so that
 * `spillway explain REQUEST_ID` can tell their story with its reasons. A ticket that something still happens to stays;
 * the one that has been quiet for longest is forgotten first.
 */
export interface RecentTicketsOptions {
  /** A thousand tickets of five entries are about 2 MB. */
  readonly ticketsMax?: number
  /** Retries are few; a ticket with more entries than this keeps its beginning and its newest one. */
  readonly entriesPerTicketMax?: number
}

export class RecentTickets implements Subscriber {
  readonly name = 'recent'
  readonly #ticketsMax: number
  readonly #entriesPerTicketMax: number
  /** Least recently heard of first: a Map keeps the order of insertion. */
  readonly #stories = new Map<string, Entry[]>()
  #newestId: string | undefined

  constructor(options: RecentTicketsOptions = {}) {
    this.#ticketsMax = Math.max(1, options.ticketsMax ?? 1_000)
    this.#entriesPerTicketMax = Math.max(1, options.entriesPerTicketMax ?? 64)
  }

  take(entry: Entry): void {
    const ticketId = 'ticketId' in entry ? entry.ticketId : undefined
    if (ticketId === undefined) return
    const story = this.#touch(ticketId)
    if (story.length < this.#entriesPerTicketMax) story.push(entry)
    else story[story.length - 1] = entry
  }

  /** Its entries, oldest first; undefined when it is unknown or forgotten. */
  storyOf(ticketId: string): readonly Entry[] | undefined {
    return this.#stories.get(ticketId)
  }

  /** Ids that still have a story, most recently heard of last. */
  ticketIds(): string[] {
    return [...this.#stories.keys()]
  }

  #touch(ticketId: string): Entry[] {
    const stories = this.#stories
    let story = stories.get(ticketId)
    if (story !== undefined && this.#newestId === ticketId) return story
    if (story !== undefined) stories.delete(ticketId)
    else {
      story = []
      if (stories.size >= this.#ticketsMax) this.#forgetOldest()
    }
    stories.set(ticketId, story)
    this.#newestId = ticketId
    return story
  }

  #forgetOldest(): void {
    for (const oldest of this.#stories.keys()) {
      this.#stories.delete(oldest)
      return
    }
  }
}
