import { Ring } from '../base/ring.ts'
import type { Entry } from '../domain/entry.ts'
import type { Journal } from '../lifecycle/ports.ts'

/**
 * Who hears what happened, without anybody waiting for them?
 *
 * `record` puts the entry into one bounded ring per subscriber and returns: no subscriber code runs on the request's
 * path. Rings are drained in batches later, when the scheduler says so (live: a few milliseconds later, so that many
 * requests share one delivery and one write of the log; simulated: whenever the simulator calls `drain`).
 *
 *   record ──▶ ring ──▶ metrics
 *         ├──▶ ring ──▶ log                  a full ring drops its oldest entry: what is watched is the present
 *         └──▶ ring ──▶ dashboard (busy)     a busy one is passed over until its promise settles
 *
 * All subscribers here are lossy. One that is slow, throws or hangs loses entries, which are counted per subscriber,
 * and changes nothing else (law L11). What may not be lost (ledger, audit) does not subscribe here: it goes through
 * a spool of its own.
 */
export interface Subscriber {
  readonly name: string
  /** A returned promise means "busy: give me nothing more until it settles". Throwing or rejecting loses the entry. */
  take(entry: Entry): void | Promise<void>
  /** Called after each batch, for whoever gathers first and writes once. */
  flush?(): void
}

/** How one subscriber is doing. Counts only grow. */
export interface SubscriberView {
  readonly name: string
  readonly taken: number
  /** Lost in all: pushed out of a full ring, or thrown at. */
  readonly dropped: number
  readonly waiting: number
  /** What it last threw, for a person. */
  readonly lastError: string | undefined
}

export interface LiveJournalOptions {
  /**
   * Calls the function, but never at once: `soon` when it suits, `next` before anything else that is not pending yet;
   * a later call takes the place of an earlier one. Absent: nothing is delivered until somebody calls `drain`.
   */
  readonly schedule?: (drain: () => void, when: 'soon' | 'next') => void
}

/**
 * Entries that may wait for one subscriber. A request makes about five, so this is 1,600 requests in one turn of the
 * event loop: more than a loop that is still alive can take in. 64 kB of pointers each.
 */
const RING_ENTRIES = 8_192

/**
 * Entries given to one subscriber in one turn of the event loop: this many, or half of what waits if that is more.
 * Metrics take 0.4 µs each, so an ordinary batch holds the loop for a tenth of a millisecond, which no client sees.
 * The half is what keeps up with any burst: a fixed number would fall behind for ever once a turn brings more.
 */
const BATCH_ENTRIES = 256

/** So many in one pause are a burst: they are delivered at once, long before a ring is full. */
const BURST_ENTRIES = 1_024

export class LiveJournal implements Journal {
  readonly #feeds: Feed[] = []
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
    this.#feeds.push(new Feed(subscriber, ringEntries, () => this.#wake('soon')))
  }

  record(entry: Entry): void {
    const feeds = this.#feeds
    for (let i = 0; i < feeds.length; i++) (feeds[i] as Feed).offer(entry)
    if (!this.#isScheduled) this.#wake('soon')
    else if (++this.#recordedSinceWake === BURST_ENTRIES) this.#ask('next')
  }

  /**
   * Delivers what is waiting now to everyone who is not busy. Entries that subscribers record meanwhile wait for the
   * next call, so that one which answers each entry with another cannot hold us here.
   */
  drain(): void {
    this.#deliver((waiting) => waiting)
  }

  view(): SubscriberView[] {
    return this.#feeds.map((feed) => feed.view())
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
      // Nobody on the request's path may hear of it; the next entry tries again.
      this.#isScheduled = false
    }
  }
}

/** One subscriber with its ring and its losses. */
class Feed {
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

  offer(entry: Entry): void {
    if (this.#ring.push(entry)) this.#dropped++
  }

  /** True when entries are left that could be delivered right away. */
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
      // The two steps above cannot throw; this says so to whoever looks for floating promises.
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
    // Even an error's own text may throw.
    return 'unknown'
  }
}
