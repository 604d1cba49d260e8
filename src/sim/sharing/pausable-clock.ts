import type { CancelTimer, Clock, Instant } from '../../base/clock.ts'

/**
 * The clock of a gateway that can be stopped for a while, as by SIGSTOP: time goes on, but no timer is called before the
 * gateway does. Timers that were due meanwhile are called then, in order.
 */
export class PausableClock implements Clock {
  readonly #world: Clock
  #pausedUntil: Instant | undefined

  constructor(world: Clock) {
    this.#world = world
  }

  get pausedUntil(): Instant | undefined {
    return this.#pausedUntil !== undefined && this.#pausedUntil > this.#world.now() ? this.#pausedUntil : undefined
  }

  pauseUntil(at: Instant): void {
    this.#pausedUntil = at
  }

  now(): Instant {
    return this.#world.now()
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    let cancel = this.#world.at(instant, () => {
      const { pausedUntil } = this
      if (pausedUntil === undefined) fn()
      else cancel = this.#world.at(pausedUntil, fn)
    })
    return () => cancel()
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.now() + durationUs, resolve)
    })
  }

  /** Resolves at once, or when the gateway goes on. */
  async running(): Promise<void> {
    const { pausedUntil } = this
    if (pausedUntil !== undefined) await this.#world.sleep(pausedUntil - this.#world.now())
  }
}
