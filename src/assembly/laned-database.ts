import type { Clock } from '../base/clock.ts'
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

/** A database behind lanes: statements wait in their tenant's lane, and lanes take turns. */
export class LanedDatabase implements Database {
  readonly #inner: Database
  readonly #gate: LaneGate

  constructor(inner: Database, clock: Clock, placesMax: number) {
    this.#inner = inner
    this.#gate = new LaneGate(clock, 'the store', lanesOf(placesMax))
  }

  query(sql: string, parameters: readonly Parameter[], options: QueryOptions = {}): Promise<readonly Row[]> {
    const { lane = PLATFORM_LANE, isUrgent = false, cancellation, wait } = options
    return this.#gate.run({
      lane,
      isUrgent,
      cancellation,
      wait,
      start: () => this.#inner.query(sql, parameters, options),
      cancelled: (because) => new QueryCancelled(because),
    })
  }

  run(script: string, options?: RunOptions): Promise<void> {
    return this.#gate.run({
      lane: PLATFORM_LANE,
      isUrgent: false,
      start: () => this.#inner.run(script, options),
      cancelled: (because) => new QueryCancelled(because),
    })
  }

  close(): Promise<void> {
    this.#gate.close(new DatabaseUnavailable('The database is closing.'))
    return this.#inner.close()
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
