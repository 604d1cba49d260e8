import { Ring } from '../base/ring.ts'
import type { Entry } from '../domain/entry.ts'
import type { Journal } from '../lifecycle/ports.ts'

/**
 * The live journal: delivers entries to subscribers without making requests wait for them.
 *
 * `record` puts the entry into one bounded ring per subscriber that takes its kind, and returns: no subscriber code runs
 * on the request's path. Rings are drained in batches later, when the scheduler says so (live: a few milliseconds later, so that many
 * requests share one delivery and one write of the log; simulated: whenever the simulator calls `drain`).
 *
 *   record ──▶ ring ──▶ metrics
 *         ├──▶ ring ──▶ log                  a full ring drops its oldest entry: the present matters most
 *         └──▶ ring ──▶ another (busy)       a busy subscriber is skipped until its promise settles
 *
 * Subscribers may lose entries: one that is slow, throws or hangs loses entries, which are counted per subscriber, and
 * changes nothing else (law L11). What must not be lost therefore goes through a port, not through the journal.
 */
export interface Subscriber {
  readonly name: string
  /** The kinds of entries that it takes; absent: all. It is offered no others. */
  readonly kinds?: ReadonlySet<Entry['kind']>
  /**
   * A returned promise means: busy, deliver nothing more until it settles. If it throws or rejects, the entry is lost.
   */
  take(entry: Entry): void | Promise<void>
  /** Called after each batch, for subscribers that gather entries and write once. */
  flush?(): void
}

/** The state of one subscriber. Counts only grow. */
export interface SubscriberView {
  readonly name: string
  readonly taken: number
  /** Entries lost in all: pushed out of a full ring, or failed. */
  readonly dropped: number
  readonly waiting: number
  /** The subscriber's last error, for a person. */
  readonly lastError: string | undefined
}

export interface LiveJournalOptions {
  /**
   * Calls the function later: `soon` when it suits, `next` before anything else that is not pending yet; a later call
   * replaces an earlier one. Absent: nothing is delivered until `drain` is called.
   */
  readonly schedule?: (drain: () => void, when: 'soon' | 'next') => void
}

/**
 * Entries that may wait for one subscriber. A request makes about five, so this is 1,600 requests in one turn of the
 * event loop, more than a working loop can take in. 64 kB of pointers each.
 */
const RING_ENTRIES = 8_192

/**
 * Entries given to one subscriber in one turn of the event loop: this many, or half of the waiting ones if that is
 * more. Metrics take 0.4 µs each, so an ordinary batch holds the loop for a tenth of a millisecond, which no client
 * notices. The half keeps up with any burst: a fixed number would fall behind once a turn brings more.
 */
const BATCH_ENTRIES = 256

/** This many entries in one pause are a burst: they are delivered at once, long before a ring is full. */
const BURST_ENTRIES = 1_024

export class LiveJournal implements Journal {
  readonly #feeds: Feed[] = []
  /** Who takes entries of a kind; made when the first entry of the kind comes. */
  readonly #takers = new Map<Entry['kind'], readonly Feed[]>()
  readonly #schedule: LiveJournalOptions['schedule']
  readonly #drainSome = (): void => {
    this.#isScheduled = false
    if (this.#deliver((waiting) => Math.max(BATCH_ENTRIES, waiting >> 1))) this.#wake('next')
  }
  #isScheduled = false
  #recordedSinceWake = 0

  constructor(options: LiveJournalOptions = {}) {
    this.#schedule = options.schedule
  }

  subscribe(subscriber: Subscriber, ringEntries = RING_ENTRIES): void {
    this.#feeds.push(new RingFeed(subscriber, ringEntries, () => this.#wake('soon')))
    this.#takers.clear()
  }

  /**
   * A subscriber that loses nothing: its `take` runs within `record`, on the path of whoever records. For the audit
   * alone, whose kinds are rare and whose `take` only appends.
   */
  tap(subscriber: Subscriber): void {
    this.#feeds.push(new Tap(subscriber))
    this.#takers.clear()
  }

  record(entry: Entry): void {
    const takers = this.#takers.get(entry.kind) ?? this.#takersOf(entry.kind)
    for (let i = 0; i < takers.length; i++) (takers[i] as Feed).offer(entry)
    if (!this.#isScheduled) this.#wake('soon')
    else if (++this.#recordedSinceWake === BURST_ENTRIES) this.#ask('next')
  }

  /**
   * Delivers the waiting entries to every subscriber that is not busy. Entries recorded meanwhile wait for the next
   * call, so that a subscriber which records an entry for each entry cannot loop here.
   */
  drain(): void {
    this.#deliver((waiting) => waiting)
  }

  view(): SubscriberView[] {
    return this.#feeds.map((feed) => feed.view())
  }

  #takersOf(kind: Entry['kind']): readonly Feed[] {
    const takers = this.#feeds.filter((feed) => feed.takes(kind))
    this.#takers.set(kind, takers)
    return takers
  }

  #deliver(batchOf: (waiting: number) => number): boolean {
    let isMoreWaiting = false
    for (const feed of this.#feeds) if (feed.deliver(batchOf)) isMoreWaiting = true
    return isMoreWaiting
  }

  #wake(when: 'soon' | 'next'): void {
    if (this.#isScheduled) return
    this.#recordedSinceWake = 0
    this.#ask(when)
  }

  #ask(when: 'soon' | 'next'): void {
    if (this.#schedule === undefined) return
    this.#isScheduled = true
    try {
      this.#schedule(this.#drainSome, when)
    } catch {
      // The request's path must not see this error; the next entry tries again.
      this.#isScheduled = false
    }
  }
}

/** What the journal gives entries to. */
interface Feed {
  takes(kind: Entry['kind']): boolean
  offer(entry: Entry): void
  /** True when entries are left that could be delivered right away. */
  deliver(batchOf: (waiting: number) => number): boolean
  view(): SubscriberView
}

class Tap implements Feed {
  readonly #subscriber: Subscriber
  #taken = 0
  #dropped = 0
  #lastError: string | undefined

  constructor(subscriber: Subscriber) {
    this.#subscriber = subscriber
  }

  takes(kind: Entry['kind']): boolean {
    return this.#subscriber.kinds?.has(kind) ?? true
  }

  offer(entry: Entry): void {
    try {
      void this.#subscriber.take(entry)
      this.#taken++
    } catch (error) {
      this.#dropped++
      this.#lastError = messageOf(error)
    }
  }

  deliver(): boolean {
    return false
  }

  view(): SubscriberView {
    const { name } = this.#subscriber
    return { name, taken: this.#taken, dropped: this.#dropped, waiting: 0, lastError: this.#lastError }
  }
}

/** One subscriber with its ring and its losses. */
class RingFeed implements Feed {
  readonly #subscriber: Subscriber
  readonly #ring: Ring<Entry>
  readonly #onFree: () => void
  #taken = 0
  #dropped = 0
  #lastError: string | undefined
  #isBusy = false

  constructor(subscriber: Subscriber, ringEntries: number, onFree: () => void) {
    this.#subscriber = subscriber
    this.#ring = new Ring(ringEntries)
    this.#onFree = onFree
  }

  takes(kind: Entry['kind']): boolean {
    return this.#subscriber.kinds?.has(kind) ?? true
  }

  offer(entry: Entry): void {
    if (this.#ring.push(entry)) this.#dropped++
  }

  deliver(batchOf: (waiting: number) => number): boolean {
    const ring = this.#ring
    if (ring.size === 0 || this.#isBusy) return false
    let left = Math.min(ring.size, batchOf(ring.size))
    for (; left > 0 && !this.#isBusy; left--) this.#give(ring.shift() as Entry)
    this.#flush()
    return ring.size > 0 && !this.#isBusy
  }

  view(): SubscriberView {
    return {
      name: this.#subscriber.name,
      taken: this.#taken,
      dropped: this.#dropped,
      waiting: this.#ring.size,
      lastError: this.#lastError,
    }
  }

  #give(entry: Entry): void {
    try {
      const busy = this.#subscriber.take(entry)
      if (busy === undefined) this.#taken++
      else this.#waitFor(busy)
    } catch (error) {
      this.#lose(error)
    }
  }

  #waitFor(busy: Promise<void>): void {
    this.#isBusy = true
    busy
      .then(
        () => {
          this.#taken++
        },
        (error: unknown) => this.#lose(error),
      )
      .then(() => {
        this.#isBusy = false
        if (this.#ring.size > 0) this.#onFree()
      })
      // The two steps above cannot throw; this satisfies the check for floating promises.
      .catch(() => {})
  }

  #flush(): void {
    try {
      this.#subscriber.flush?.()
    } catch (error) {
      this.#lastError = messageOf(error)
    }
  }

  #lose(error: unknown): void {
    this.#dropped++
    this.#lastError = messageOf(error)
  }
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    // Reading an error's text may itself throw.
    return 'unknown'
  }
}
