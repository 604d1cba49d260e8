import type { Instant } from '../base/clock.ts'
import { type StepPace, TICKS_PER_US } from './step-time.ts'

/**
 * Where are the boundaries between steps?
 *
 * The last one is kept as whole microseconds and ticks beyond them, because an instant in ticks would not fit into the
 * 53 bits in which a number is exact. From there on a stretch of steps runs at a pace, an arithmetic progression:
 *
 *     boundary ──ticks──┼──ticks + growth──┼──ticks + 2·growth──┼ …
 *
 * To the outside a boundary is the first whole microsecond at which it has been passed.
 */
export class Timeline {
  /** Of the step after the boundary; whoever plans a step writes it. */
  readonly pace: StepPace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  #us: Instant = 0
  #ticks = 0
  #busyUs = 0

  /** The last boundary, rounded down: what begins here began no later. */
  get boundaryUs(): Instant {
    return this.#us
  }

  /** The last boundary, rounded up: what ended here has ended. */
  get boundaryAt(): Instant {
    return this.#ticks > 0 ? this.#us + 1 : this.#us
  }

  /** Time spent in steps since the start. */
  get busyUs(): number {
    return this.#busyUs
  }

  /** After idling. */
  startAt(now: Instant): void {
    this.#us = now
    this.#ticks = 0
  }

  endOf(steps: number): Instant {
    return this.#us + Math.ceil((this.#ticks + stretchTicks(this.pace, steps)) / TICKS_PER_US)
  }

  isEndOf(steps: number, now: Instant): boolean {
    return stretchTicks(this.pace, steps) === this.#ticksUntil(now)
  }

  /** Share of the step after the boundary that is still to come. */
  leftRatio(now: Instant): number {
    const { ticks } = this.pace
    return ticks > 0 ? Math.min(1, Math.max(0, 1 - this.#ticksUntil(now) / ticks)) : 0
  }

  /** How many of `steps` steps, the last excepted, are over; by bisection over the exact sum: no root to round. */
  stepsOverAt(now: Instant, steps: number): number {
    const ticks = this.#ticksUntil(now)
    let over = 0
    let notOver = steps
    while (notOver - over > 1) {
      const middle = (over + notOver) >> 1
      if (stretchTicks(this.pace, middle) <= ticks) over = middle
      else notOver = middle
    }
    return over
  }

  /** Moves the boundary over so many steps; the pace is then that of the step after them. */
  pass(steps: number): void {
    const ticks = this.#ticks + stretchTicks(this.pace, steps)
    const us = Math.floor(ticks / TICKS_PER_US)
    this.#us += us
    this.#ticks = ticks - us * TICKS_PER_US
    this.#busyUs += us
    this.pace.ticks += this.pace.ticksGrowth * steps
  }

  #ticksUntil(now: Instant): number {
    return (now - this.#us) * TICKS_PER_US - this.#ticks
  }
}

function stretchTicks(pace: StepPace, steps: number): number {
  return steps * pace.ticks + (pace.ticksGrowth * steps * (steps - 1)) / 2
}
