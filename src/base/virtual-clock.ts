import type { CancelTimer, Clock, Instant } from './clock.ts'
import { Timers } from './timers.ts'

/**
 * Simulated time: an hour of traffic in seconds, the same code, the same order every time.
 *
 * `run` takes the earliest timer, sets `now` to its instant, calls it, lets every promise that it woke run to its
 * next wait, and goes on. Nothing simulated does real I/O, so when the microtask queue is empty the world is at rest
 * until the next timer: ordinary async code becomes deterministic.
 *
 * The way to "let the queue empty" is a tick queued from inside a microtask: Node runs ticks only after all
 * microtasks are done. It costs a tenth of `setImmediate`, which counts when a run has ten million events. Now and
 * then `setImmediate` is used all the same, so that a long run still sees its signals and paints its progress.
 */

const EVENTS_PER_BREATH = 8_192

export class VirtualClock implements Clock {
  readonly #timers = new Timers()
  #now: Instant
  #isRunning = false
  #eventCount = 0

  constructor(startAt: Instant = 0) {
    this.#now = startAt
  }

  now(): Instant {
    return this.#now
  }

  /** Timers called so far. */
  get eventCount(): number {
    return this.#eventCount
  }

  get pendingCount(): number {
    return this.#timers.count
  }

  /** A timer in the past is due now: time never runs backwards. */
  at(instant: Instant, fn: () => void): CancelTimer {
    return this.#timers.add(Math.max(this.#now, Math.ceil(instant)), fn)
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.#now + durationUs, resolve)
    })
  }

  /** Runs until no timer is left, or none at or before `untilAt`; then `now` is `untilAt`, if one was given. */
  run(untilAt: Instant = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#isRunning) throw new Error('the virtual clock is already running')
    this.#isRunning = true
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        this.#isRunning = false
        if (Number.isFinite(untilAt)) this.#now = Math.max(this.#now, untilAt)
        resolve()
      }
      const hop = (): void => process.nextTick(step)
      const step = (): void => {
        const nextAt = this.#timers.nextAt()
        if (nextAt === undefined || nextAt > untilAt) {
          finish()
          return
        }
        this.#now = nextAt
        this.#eventCount++
        try {
          this.#timers.takeDue(nextAt)?.()
        } catch (error) {
          this.#isRunning = false
          reject(error)
          return
        }
        if (this.#eventCount % EVENTS_PER_BREATH === 0) setImmediate(step)
        else void NOW.then(hop)
      }
      void NOW.then(hop)
    })
  }
}

/** Its `then` queues a microtask without the async resource that `queueMicrotask` makes for each. */
const NOW = Promise.resolve()
