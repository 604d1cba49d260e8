import { type Instant, msToUs, secondsToUs } from '../base/clock.ts'

/**
 * When is a process that ended replaced? At once if it had lived long enough to be of use; otherwise after a pause that
 * doubles with each process that ended young, up to half a minute, so that a fault at the start does not take the host's
 * processor from those that serve. When nobody is left and the young deaths go on, the host has failed: it says so and
 * ends, and whoever started it decides.
 */
const YOUNG_US = secondsToUs(10)
const PAUSE_US_MIN = msToUs(100)
const PAUSE_US_MAX = secondsToUs(30)
/** Pauses of 0.1 s to 1.6 s: an engine or a database that is restarted is back by then. */
const YOUNG_DEATHS_MAX = 6

export type Replacement = { readonly kind: 'start'; readonly afterUs: number } | { readonly kind: 'give-up' }

export class Replacements {
  #youngDeaths = 0

  /** A process that was ready since `readyAt` (undefined: never) has ended; `othersReady` still serve. */
  ended(now: Instant, readyAt: Instant | undefined, othersReady: number): Replacement {
    if (readyAt !== undefined && now - readyAt >= YOUNG_US) {
      this.#youngDeaths = 0
      return { kind: 'start', afterUs: 0 }
    }
    this.#youngDeaths++
    if (this.#youngDeaths >= YOUNG_DEATHS_MAX && othersReady === 0) return { kind: 'give-up' }
    return { kind: 'start', afterUs: Math.min(PAUSE_US_MAX, PAUSE_US_MIN * 2 ** (this.#youngDeaths - 1)) }
  }
}
