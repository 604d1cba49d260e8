import type { CancelTimer, Clock, Instant } from './clock.ts'

/**
 * Another clock, counted from the start of a run: so a live run and a simulated one speak of the same instants. The
 * start may lie a little ahead; until then it is zero, so that everybody who is set up meanwhile begins together.
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
