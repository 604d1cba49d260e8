import type { CancelTimer, Clock, Instant } from './clock.ts'
import { Timers } from './timers.ts'

/**
 * Real time. One operating-system timer is armed for the earliest of ours, however many there are: a request sets
 * several deadlines and cancels nearly all of them, which must cost a heap push and not a `setTimeout` each.
 *
 * `now` is monotonic: it is anchored to the wall clock once and then follows the process's steady counter, so a
 * stepped system clock never makes a deadline jump.
 *
 * It can run slower than the world: at a pace of 0.5 one of its seconds takes two. Whoever compares a live run with a
 * simulated one on a busy machine gives everybody more time, and changes nothing else.
 */

/** `setTimeout` takes at most this many milliseconds; further timers are re-armed on the way. */
const TIMEOUT_MS_MAX = 2_147_483_647

export class LiveClock implements Clock {
  readonly #timers = new Timers()
  /** Once, because it is asked a dozen times for every request. */
  readonly #originUs = performance.timeOrigin * 1_000
  #armedAt = Number.POSITIVE_INFINITY
  #handle: NodeJS.Timeout | undefined
  readonly #pace: number
  readonly #startedMs = performance.now()

  constructor(pace = 1) {
    this.#pace = pace
  }

  now(): Instant {
    const nowMs = performance.now()
    // At the world's pace all clocks of a process agree to the microsecond.
    const heldBackMs = this.#pace === 1 ? 0 : (1 - this.#pace) * (nowMs - this.#startedMs)
    return Math.round(this.#originUs + (nowMs - heldBackMs) * 1_000)
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    const cancel = this.#timers.add(instant, fn)
    if (instant < this.#armedAt) this.#arm(instant)
    return cancel
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.now() + durationUs, resolve)
    })
  }

  #arm(instant: Instant): void {
    clearTimeout(this.#handle)
    this.#armedAt = instant
    const delayMs = Math.min(TIMEOUT_MS_MAX, Math.max(0, Math.ceil((instant - this.now()) / 1_000 / this.#pace)))
    this.#handle = setTimeout(() => this.#fire(), delayMs)
    // A pending deadline alone must not keep a finished process alive.
    this.#handle.unref()
  }

  #fire(): void {
    this.#armedAt = Number.POSITIVE_INFINITY
    const now = this.now()
    try {
      for (let fn = this.#timers.takeDue(now); fn !== undefined; fn = this.#timers.takeDue(now)) fn()
    } finally {
      const next = this.#timers.nextAt()
      if (next !== undefined && next < this.#armedAt) this.#arm(next)
    }
  }
}
