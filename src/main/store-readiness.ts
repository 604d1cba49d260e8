import { type Clock, type Instant, msToUs, secondsToUs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { ToldReadiness } from '../gateway/routes/operate.ts'
import { type Database, DatabaseUnavailable } from '../store/database.ts'

/**
 * Does the store answer? For the readiness of a process that is of no use without its store.
 *
 * Anybody may ask for readiness, and as often as they like: one statement runs at a time, an answer counts for a second,
 * and nobody waits longer than `ANSWER_US_MAX`. A statement that hangs is not repeated before it has ended.
 */
export interface StoreReadinessOptions {
  readonly clock: Clock
  readonly database: Pick<Database, 'query'>
}

/** An answer older than this is asked for anew: balancers ask every second or two. */
const FRESH_US = secondsToUs(1)

/** Shorter than the time limits of usual probes, so that the reason is read and not a broken connection. */
const ANSWER_US_MAX = msToUs(800)

const LATE: ToldReadiness = { isReady: false, because: 'the store does not answer' }

export class StoreReadiness {
  readonly #options: StoreReadinessOptions
  #last: { readonly at: Instant; readonly told: ToldReadiness } | undefined
  #asking: Promise<ToldReadiness> | undefined

  constructor(options: StoreReadinessOptions) {
    this.#options = options
  }

  async ask(): Promise<ToldReadiness> {
    const { clock } = this.#options
    if (this.#last !== undefined && clock.now() - this.#last.at < FRESH_US) return this.#last.told
    this.#asking ??= this.#question().then((told) => {
      this.#last = { at: clock.now(), told }
      this.#asking = undefined
      return told
    })
    const waited = await withinTime(clock, clock.now() + ANSWER_US_MAX, this.#asking)
    return waited.kind === 'done' ? waited.value : LATE
  }

  /** Never rejects. What the error keeps from clients is told to the operator where statements are sent. */
  async #question(): Promise<ToldReadiness> {
    try {
      await this.#options.database.query('select 1 as one', [], { isUrgent: true })
      return { isReady: true, because: 'the store answers' }
    } catch (error) {
      const because = error instanceof DatabaseUnavailable ? error.message : 'the store answers with an error'
      return { isReady: false, because }
    }
  }
}
