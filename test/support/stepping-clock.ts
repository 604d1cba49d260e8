import type { CancelTimer, Clock, Instant } from '../../src/base/clock.ts'

/**
 * A clock that counts the timers it calls and lets a test act at each of them: before its callback, or so many
 * microtasks after it. Running a scenario once for every such moment tries them all.
 */
export interface Moment {
  /** The how-manieth timer. */
  readonly event: number
  /** Before the callback, or this many microtasks after it. */
  readonly when: 'before' | number
}

export class SteppingClock implements Clock {
  readonly #inner: Clock
  readonly #moment: Moment | undefined
  readonly #act: () => void
  eventCount = 0

  constructor(inner: Clock, moment: Moment | undefined, act: () => void) {
    this.#inner = inner
    this.#moment = moment
    this.#act = act
  }

  now(): Instant {
    return this.#inner.now()
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    return this.#inner.at(instant, () => {
      const isNow = ++this.eventCount === this.#moment?.event
      if (isNow && this.#moment?.when === 'before') this.#act()
      fn()
      if (isNow && typeof this.#moment?.when === 'number') afterMicrotasks(this.#moment.when, this.#act)
    })
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.now() + durationUs, resolve)
    })
  }
}

function afterMicrotasks(count: number, fn: () => void): void {
  if (count === 0) fn()
  else queueMicrotask(() => afterMicrotasks(count - 1, fn))
}
