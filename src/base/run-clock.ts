import type { CancelTimer, Clock, Instant } from './clock.ts'

/**
 * Another clock, counted from the start of a run, so that a live run and a simulated run have the same instants. The
 * start may be a little ahead; until then `now` is zero, so that all clients that are set up meanwhile begin together.
 */
export class RunClock implements Clock {
  readonly #clock: Clock
  readonly #startAt: Instant

  constructor(clock: Clock, startAt: Instant = clock.now()) {
    this.#clock = clock
    this.#startAt = startAt
  }

  now(): Instant {
    return Math.max(0, this.#clock.now() - this.#startAt)
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    return this.#clock.at(instant + this.#startAt, fn)
  }

  sleep(durationUs: number): Promise<void> {
    return this.#clock.sleep(durationUs)
  }
}
