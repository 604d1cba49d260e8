import { type Clock, secondsToUs } from '../base/clock.ts'

/**
 * Repeats steps of background work until they work, with growing pauses: nobody waits for it, and what is away comes
 * back. Eight minutes in all; then the step's own error is thrown.
 */
const PAUSE_US_MIN = secondsToUs(0.5)
const PAUSE_US_MAX = secondsToUs(30)
/** A step that failed this often in a row is given up: a restart would not help. */
const ATTEMPTS_MAX = 20

export class StepRepeater {
  readonly #clock: Clock
  #isStopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  stop(): void {
    this.#isStopped = true
  }

  /** The step's result; undefined when the work was stopped. Throws what has failed too often. */
  async repeat<T>(step: () => Promise<T>, attemptsMax = ATTEMPTS_MAX): Promise<T | undefined> {
    let pauseUs = PAUSE_US_MIN
    for (let attempt = 1; !this.#isStopped; attempt++) {
      try {
        return await step()
      } catch (error) {
        if (attempt >= attemptsMax || isHopeless(error)) throw error
        await this.#pause(pauseUs)
        pauseUs = Math.min(PAUSE_US_MAX, pauseUs * 2)
      }
    }
    return undefined
  }

  /** Sleeps in short pieces, so that stopping does not wait for a long pause. */
  async #pause(durationUs: number): Promise<void> {
    const endsAt = this.#clock.now() + durationUs
    while (!this.#isStopped && this.#clock.now() < endsAt) {
      await this.#clock.sleep(Math.min(PAUSE_US_MIN, endsAt - this.#clock.now()))
    }
  }
}

/** The store refused the statement (an SQL error has a code of five characters): repeating it changes nothing. */
function isHopeless(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(22|23|42)/.test(code) && code.length === 5
}
