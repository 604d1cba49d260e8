import type { CancelTimer, Clock } from '../../base/clock.ts'
import type { SharingState } from '../../domain/platform-entry.ts'
import type { SliceBook } from '../../policy/sharing/slice-book.ts'
import type { Journal } from '../ports.ts'
import type { Renewals } from './renewals.ts'

/**
 * Do this gateway and the lease store hear each other? Once a second the answer goes to the journal, and a change of it goes
 * there at once, with the reason that the store's client gave. It decides nothing: `slice-book.ts` and its buckets find out
 * for themselves.
 *
 * Deliberately not: a store that is silent for less than a second is not told of.
 */
export class SharingWatch {
  readonly #parts: SharingWatchParts
  #state: SharingState | undefined
  #cancelTimer: CancelTimer | undefined
  #isStopped = false

  constructor(parts: SharingWatchParts) {
    this.#parts = parts
  }

  start(): void {
    const { clock } = this.#parts
    this.#look()
    if (!this.#isStopped) this.#cancelTimer = clock.at(clock.now() + REPORT_US, () => this.start())
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  /** For the readiness probe, whose answer it does not change. */
  get detail(): string {
    const { clock, book } = this.#parts
    const { shardCount, sinceUs } = book.silence(clock.now())
    if (shardCount === 0) return `limits are shared by ${book.gatewayCount} gateways`
    return `limits are at the safe share: the lease store has been silent for ${seconds(sinceUs)}`
  }

  #look(): void {
    const { clock, journal, book, renewals } = this.#parts
    const now = clock.now()
    const { shardCount, sinceUs } = book.silence(now)
    const { gatewayCount, silentCount } = book
    const { ttlMs, forgetMs } = book.options
    const state = shardCount === 0 ? 'shared' : 'alone'
    if (state !== this.#state) {
      this.#state = state
      journal.record({
        kind: 'sharing-changed',
        at: now,
        state,
        gatewayCount,
        because: this.#because(shardCount, sinceUs),
      })
    }
    journal.record({
      kind: 'sharing-reported',
      at: now,
      gatewayCount,
      silentCount,
      silentShardCount: shardCount,
      answerAgeUs: book.answerAgeUs(now),
      beyondForgetUs: Math.max(0, sinceUs - forgetMs * 1_000),
      excessUs: Math.round((silentCount / gatewayCount) * ttlMs * 1_000),
      ...renewals.takeCounts(),
    })
  }

  #because(shardCount: number, sinceUs: number): string {
    const { where, problem } = this.#parts
    if (shardCount === 0) return `the lease store answers: ${where}`
    const why = problem() ?? 'no answer in time'
    return `${shardCount} shards of the lease store (${where}) have been silent for ${seconds(sinceUs)}: ${why}`
  }
}

export interface SharingWatchParts {
  readonly clock: Clock
  readonly journal: Journal
  readonly book: SliceBook
  readonly renewals: Pick<Renewals, 'takeCounts'>
  /** The store, without a password. */
  readonly where: string
  readonly problem: () => string | undefined
}

const REPORT_US = 1_000_000

const seconds = (us: number): string => `${(us / 1_000_000).toFixed(1)} s`
