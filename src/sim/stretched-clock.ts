import type { CancelTimer, Clock, Instant } from '../base/clock.ts'

interface StretchedTimer {
  readonly at: Instant
  readonly fn: () => void
  /** Forgets the world's timer; undefined while the clock stands still. */
  cancel: CancelTimer | undefined
}

/**
 * A clock for one engine that can run slower than the world's, or stand still, which is how a slow or hanging GPU looks
 * from outside. Instants given to `at` are the engine's own.
 */
export class StretchedClock implements Clock {
  readonly #world: Clock
  #pace = 1
  #worldAnchor: Instant
  #ownAnchor: Instant
  /** In the order in which they were set. An engine has one at a time, so a list is shorter than a set. */
  readonly #timers: StretchedTimer[] = []

  constructor(world: Clock) {
    this.#world = world
    this.#worldAnchor = world.now()
    this.#ownAnchor = this.#worldAnchor
  }

  get isStopped(): boolean {
    return this.#pace === 0
  }

  now(): Instant {
    return this.#ownAnchor + Math.floor((this.#world.now() - this.#worldAnchor) * this.#pace)
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    const timer: StretchedTimer = { at: instant, fn, cancel: undefined }
    this.#timers.push(timer)
    this.#arm(timer)
    return () => {
      this.#forget(timer)
      timer.cancel?.()
    }
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.now() + durationUs, resolve)
    })
  }

  setPace(pace: number): void {
    const own = this.now()
    this.#worldAnchor = this.#world.now()
    this.#ownAnchor = own
    this.#pace = Number.isFinite(pace) ? pace : 1
    for (const timer of this.#timers) {
      timer.cancel?.()
      this.#arm(timer)
    }
  }

  /**
   * Rounding of × 1 ÷ 1.3 and back loses a little: a timer that fires must find its instant reached, or it fires for
   * ever.
   */
  #catchUpTo(own: Instant): void {
    if (this.now() >= own) return
    this.#worldAnchor = this.#world.now()
    this.#ownAnchor = own
  }

  #forget(timer: StretchedTimer): void {
    const at = this.#timers.indexOf(timer)
    if (at >= 0 && at === this.#timers.length - 1) this.#timers.pop()
    else if (at >= 0) this.#timers.splice(at, 1)
  }

  #arm(timer: StretchedTimer): void {
    timer.cancel = undefined
    if (this.#pace === 0) return
    const worldAt = this.#worldAnchor + Math.ceil((timer.at - this.#ownAnchor) / this.#pace)
    timer.cancel = this.#world.at(worldAt, () => {
      this.#forget(timer)
      this.#catchUpTo(timer.at)
      timer.fn()
    })
  }
}
