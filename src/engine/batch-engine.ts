import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import type { BatchCost } from './batch-cost.ts'
import type { EngineEvent } from './engine-event.ts'

/**
 * Serving models that answer in one go: embeddings, ranking, vision.
 *
 * There is nothing to decode, so there is nothing to batch continuously: Triton's dynamic batching instead. Items
 * gather until there are `batchSizeMax` of them (MAX_BATCH_SIZE) or the oldest has waited `batchTimeoutUs`
 * (BATCH_TIMEOUT_MS); then they run together, and none leaves before all are done. A batch is full, too, when the next item
 * would bring it over `batchTokensMax`. While a batch runs the next one gathers; if it is due by then it starts at once.
 *
 * Bigger batches are dearer but cheaper per item (`batch-cost.ts`); the timeout trades the one for the other.
 *
 * Worked example: batches of at most 8, 5 ms timeout, 10 ms for one and 24 ms for eight. Three items arrive at 0, 1 and
 * 2 ms: at 5 ms the batch of three starts and takes 14 ms, and all three are done at 19 ms.
 *
 * The same face and the same events as `Engine`; an answer counts as prompt tokens in, none out.
 */
export interface BatchOptions {
  readonly batchSizeMax: number
  readonly batchTimeoutUs: number
  readonly cost: BatchCost
  /** Tokens of a batch together; one item alone may have more. No bound if absent. */
  readonly batchTokensMax?: number
  /** Items that may wait; the next is refused. */
  readonly waitingMax?: number
}

export interface BatchItem {
  readonly id: string
  readonly promptTokens: number
}

export type BatchSubmission =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly code: 'queue-full'; readonly because: string }

export interface BatchView {
  readonly running: number
  readonly waiting: number
  readonly batches: number
  readonly finished: number
  readonly aborted: number
  /** Of all batches so far. */
  readonly promptTokens: number
  readonly busyUs: number
}

interface WaitingItem extends BatchItem {
  readonly arrivedAt: Instant
}

export class BatchEngine {
  readonly #options: BatchOptions
  /** In order of arrival. */
  #waiting: WaitingItem[] = []
  #running: WaitingItem[] = []
  #endAt: Instant | undefined
  /** No batch starts before the one before it has ended. */
  #freeAt: Instant = 0
  #now: Instant = 0
  #events: EngineEvent[] = []
  #batches = 0
  #finished = 0
  #aborted = 0
  #promptTokens = 0
  #busyUs = 0

  constructor(options: BatchOptions) {
    assert(options.batchSizeMax >= 1, 'a batch has room')
    this.#options = options
  }

  submit(now: Instant, item: BatchItem): BatchSubmission {
    this.#catchUp(now, false)
    const { waitingMax } = this.#options
    if (waitingMax !== undefined && this.#waiting.length >= waitingMax) {
      return { kind: 'refused', code: 'queue-full', because: `${this.#waiting.length} items are waiting` }
    }
    this.#waiting.push({ ...item, arrivedAt: now })
    return { kind: 'taken' }
  }

  /** True when the item was still here. A batch that runs takes as long without it. */
  abort(now: Instant, id: string): boolean {
    this.#catchUp(now, false)
    const count = this.#waiting.length + this.#running.length
    this.#waiting = this.#waiting.filter((item) => item.id !== id)
    this.#running = this.#running.filter((item) => item.id !== id)
    const isFound = this.#waiting.length + this.#running.length < count
    if (isFound) this.#aborted++
    return isFound
  }

  nextEventAt(): Instant | undefined {
    if (this.#events.length > 0) return this.#now
    return this.#endAt ?? this.#startAt()
  }

  /** Everything that has happened up to and including `now`, in order. */
  advance(now: Instant): readonly EngineEvent[] {
    this.#catchUp(now, true)
    const events = this.#events
    this.#events = []
    return events
  }

  view(now: Instant): BatchView {
    this.#catchUp(now, false)
    return {
      running: this.#running.length,
      waiting: this.#waiting.length,
      batches: this.#batches,
      finished: this.#finished,
      aborted: this.#aborted,
      promptTokens: this.#promptTokens,
      busyUs: this.#busyUs,
    }
  }

  assertInvariants(): void {
    assert(this.#running.length <= this.#options.batchSizeMax, 'no batch is larger than the limit')
    assert(this.#endAt !== undefined || this.#running.length === 0, 'items run only in a batch')
  }

  /** When the next batch is due: full, or its oldest has waited long enough; not while another one runs. */
  #startAt(): Instant | undefined {
    const oldest = this.#waiting[0]
    if (oldest === undefined) return undefined
    const { fullAt } = this.#nextBatch()
    const dueAt = Math.min(oldest.arrivedAt + this.#options.batchTimeoutUs, fullAt ?? Number.POSITIVE_INFINITY)
    return Math.max(dueAt, this.#freeAt)
  }

  /** How many of those who wait go together, and since when they could not be more. */
  #nextBatch(): { readonly size: number; readonly fullAt: Instant | undefined } {
    const { batchSizeMax, batchTokensMax = Number.POSITIVE_INFINITY } = this.#options
    let tokens = 0
    for (const [size, { promptTokens, arrivedAt }] of this.#waiting.entries()) {
      tokens += promptTokens
      if (size > 0 && tokens > batchTokensMax) return { size, fullAt: arrivedAt }
      if (size + 1 === batchSizeMax) return { size: batchSizeMax, fullAt: arrivedAt }
    }
    return { size: this.#waiting.length, fullAt: undefined }
  }

  #catchUp(now: Instant, isStartIncluded: boolean): void {
    assert(now >= this.#now, 'time does not run backwards')
    this.#now = now
    for (;;) {
      if (this.#endAt === undefined) {
        const startAt = this.#startAt()
        if (startAt === undefined || startAt > now || (startAt === now && !isStartIncluded)) return
        this.#start(startAt)
      }
      if ((this.#endAt as Instant) > now) return
      this.#end(this.#endAt as Instant)
    }
  }

  #start(at: Instant): void {
    this.#running = this.#waiting.splice(0, this.#nextBatch().size)
    const itemTokens = this.#running.map(({ promptTokens }) => promptTokens)
    const us = Math.max(1, Math.round(this.#options.cost(itemTokens)))
    for (const tokens of itemTokens) this.#promptTokens += tokens
    this.#endAt = at + us
    this.#batches++
    this.#busyUs += us
  }

  #end(at: Instant): void {
    for (const { id, promptTokens, arrivedAt } of this.#running) {
      const usage = { promptTokens, cachedTokens: 0, outputTokens: 0 }
      this.#events.push({ kind: 'finished', at, id, tokens: 0, arrivedAt, firstTokenAt: at, usage, preemptions: 0 })
    }
    this.#finished += this.#running.length
    this.#running = []
    this.#freeAt = at
    this.#endAt = undefined
  }
}
