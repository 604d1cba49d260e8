import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import type { FairQueueOptions } from '../policy/fairness/fair-queue.ts'
import {
  type Database,
  DatabaseUnavailable,
  type Parameter,
  PLATFORM_LANE,
  QueryCancelled,
  type QueryOptions,
  type Row,
  type RunOptions,
} from '../store/database.ts'
import { LaneGate } from './lane-gate.ts'

/**
 * A database behind lanes: statements wait in their tenant's lane, and lanes take turns. What clients are not told about
 * a database that is away (addresses, file names) is reported to the operator here, once a minute at most.
 */
export interface LanedDatabaseOptions {
  readonly clock: Clock
  /** Statements that the database takes at once. */
  readonly placesMax: number
  readonly complain?: (problem: string) => void
}

const COMPLAIN_EVERY_US = secondsToUs(60)

export class LanedDatabase implements Database {
  readonly #inner: Database
  readonly #gate: LaneGate
  readonly #options: LanedDatabaseOptions
  #complainedAt: Instant | undefined

  constructor(inner: Database, options: LanedDatabaseOptions) {
    const { clock, placesMax } = options
    this.#inner = inner
    this.#options = options
    this.#gate = new LaneGate(clock, 'the store', lanesOf(placesMax))
  }

  query(sql: string, parameters: readonly Parameter[], options: QueryOptions = {}): Promise<readonly Row[]> {
    const { lane = PLATFORM_LANE, isUrgent = false, cancellation, wait } = options
    return this.#gate.run({
      lane,
      isUrgent,
      cancellation,
      wait,
      start: () => this.#told(this.#inner.query(sql, parameters, options)),
      cancelled: (because) => new QueryCancelled(because),
    })
  }

  run(script: string, options?: RunOptions): Promise<void> {
    return this.#gate.run({
      lane: PLATFORM_LANE,
      isUrgent: false,
      start: () => this.#told(this.#inner.run(script, options)),
      cancelled: (because) => new QueryCancelled(because),
    })
  }

  close(): Promise<void> {
    this.#gate.close(new DatabaseUnavailable('The database is closing.'))
    return this.#inner.close()
  }

  async #told<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      if (error instanceof DatabaseUnavailable && error.detail !== undefined) this.#complain(error)
      throw error
    }
  }

  #complain(error: DatabaseUnavailable): void {
    const { clock, complain } = this.#options
    const now = clock.now()
    if (this.#complainedAt !== undefined && now - this.#complainedAt < COMPLAIN_EVERY_US) return
    this.#complainedAt = now
    complain?.(`store: ${detailOf(error)}`)
  }
}

/**
 * Statements of one lane that may wait. Sixteen connections with a search each, which is four statements: a client with
 * more waiting is better told at once.
 */
const LANE_DEPTH_MAX = 64

/** One lane holds half of the places at most, so that another tenant's statement does not wait for a slow one. */
const lanesOf = (placesMax: number): FairQueueOptions => ({
  placesMax,
  laneRunningMax: Math.ceil(placesMax / 2),
  depthMax: LANE_DEPTH_MAX,
})
