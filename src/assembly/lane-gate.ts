import type { Cancellation } from '../base/cancellation.ts'
import type { Clock, Instant } from '../base/clock.ts'
import { LaneFull } from '../domain/corpus.ts'
import type { LaneWait } from '../lifecycle/retrieval-ports.ts'
import { FairQueue, type FairQueueOptions, type Queued } from '../policy/fairness/fair-queue.ts'

/**
 * A gate in front of a part that tenants share: work waits in its tenant's lane, and `FairQueue` says whose work goes
 * next. The gate adds what the policy does not know: promises, the clock, cancellation. It decides nothing.
 */
export interface GatedWork<T> {
  readonly lane: string
  readonly isUrgent: boolean
  /** Cancelled while it waits, the work is never started; cancelled while it runs, its result is ignored. */
  readonly cancellation?: Cancellation | undefined
  readonly wait?: LaneWait | undefined
  readonly start: () => Promise<T>
  readonly cancelled: (because: string) => Error
}

interface Entry {
  readonly start: () => Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  forget: () => void
}

export class LaneGate {
  readonly #clock: Clock
  /** As refusals name the part: `the store`. */
  readonly #what: string
  readonly #options: FairQueueOptions
  readonly #queue: FairQueue<Entry>
  readonly #hasStarted = new WeakSet<Queued<Entry>>()
  #lastEndAt: Instant | undefined

  constructor(clock: Clock, what: string, options: FairQueueOptions) {
    this.#clock = clock
    this.#what = what
    this.#options = options
    this.#queue = new FairQueue(options)
  }

  run<T>({ lane, isUrgent, cancellation, wait, start, cancelled }: GatedWork<T>): Promise<T> {
    if (cancellation?.isCancelled) return Promise.reject(cancelled(cancellation.because ?? ''))
    return new Promise<T>((resolve, reject) => {
      const entry: Entry = { start, resolve: resolve as Entry['resolve'], reject, forget: () => {} }
      const place = this.#queue.offer(lane, entry, isUrgent)
      if (place === undefined) {
        reject(this.#full(lane, isUrgent))
        return
      }
      if (cancellation !== undefined) {
        entry.forget = cancellation.onCancel((because) => {
          this.#queue.withdraw(place)
          reject(cancelled(because))
        })
      }
      const since = this.#clock.now()
      if (wait !== undefined) wait.isOwnQueue = () => !this.#hasStarted.has(place) && (this.#lastEndAt ?? -1) >= since
      this.#pump()
    })
  }

  /** Fails what waits; what runs ends by itself. */
  close(error: Error): void {
    for (const { value } of this.#queue.withdrawAll()) {
      value.forget()
      value.reject(error)
    }
  }

  #pump(): void {
    for (let place = this.#queue.take(); place !== undefined; place = this.#queue.take()) void this.#serve(place)
  }

  async #serve(place: Queued<Entry>): Promise<void> {
    this.#hasStarted.add(place)
    const { value: entry } = place
    const startedAt = this.#clock.now()
    try {
      entry.resolve(await entry.start())
    } catch (error) {
      entry.reject(error)
    }
    entry.forget()
    const now = this.#clock.now()
    this.#lastEndAt = now
    // Every turn costs something, even one that the clock cannot see.
    this.#queue.end(place, Math.max(1, now - startedAt))
    this.#pump()
  }

  #full(lane: string, isUrgent: boolean): LaneFull {
    const { placesMax, laneRunningMax } = this.#options
    const waiting = this.#queue.waitingIn(lane)
    const drainUs = (waiting * this.#queue.typicalCost(isUrgent)) / Math.min(placesMax, laneRunningMax)
    const message = `${waiting} of your statements wait for ${this.#what} already.`
    return new LaneFull(message, Math.max(RETRY_US_MIN, Math.ceil(drainUs)))
  }
}

/** A shorter time would only be rounded up: Retry-After is in seconds. */
const RETRY_US_MIN = 1_000_000
