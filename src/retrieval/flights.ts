import { Cancellation } from '../base/cancellation.ts'
import type { Clock, Instant } from '../base/clock.ts'

/**
 * The same question asked twice at once is searched once (single flight). A flight lands, fails, or is cancelled: at
 * its deadline, or when no request waits for it any more.
 */
export class Flights<T> {
  readonly #clock: Clock
  readonly #flying = new Map<string, Flight<T>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get count(): number {
    return this.#flying.size
  }

  /** Joins the flight with this name, or starts it. Every caller of `join` must call `leave` once. */
  join(
    name: string,
    deadlineAt: Instant,
    start: (cancellation: Cancellation, deadlineAt: Instant) => Promise<T>,
  ): { readonly landing: Promise<T>; readonly leave: () => void } {
    let flight = this.#flying.get(name)
    if (flight === undefined) {
      flight = this.#takeOff(name, deadlineAt, start)
      this.#flying.set(name, flight)
    }
    const joined = flight
    joined.waiterCount++
    let hasLeft = false
    const leave = (): void => {
      if (hasLeft) return
      hasLeft = true
      joined.waiterCount--
      if (joined.waiterCount === 0) joined.cancellation.cancel('nobody waits for it')
    }
    return { landing: joined.landing, leave }
  }

  #takeOff(
    name: string,
    deadlineAt: Instant,
    start: (cancellation: Cancellation, deadlineAt: Instant) => Promise<T>,
  ): Flight<T> {
    const cancellation = new Cancellation()
    const forget = this.#clock.at(deadlineAt, () => cancellation.cancel('out of time'))
    const landing = start(cancellation, deadlineAt).finally(() => {
      forget()
      this.#flying.delete(name)
    })
    // Waiting requests see the failure; without any, it is not a fault of the process.
    landing.catch(() => {})
    return { landing, cancellation, waiterCount: 0 }
  }
}

interface Flight<T> {
  readonly landing: Promise<T>
  readonly cancellation: Cancellation
  waiterCount: number
}
