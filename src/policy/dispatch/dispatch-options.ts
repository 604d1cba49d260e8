import type { FairnessName } from '../fairness/fairness.ts'
import { LANE_DEFAULTS, type LaneOptions } from '../fairness/lane.ts'
import type { CodelOptions } from './codel.ts'

/**
 * What may be set about dispatching, with its defaults and the reason for each. Configuration maps to these names;
 * nothing here is read from anywhere.
 */
export const DISPATCHER_DEFAULTS = {
  /** Tickets in all lanes together, `queue.requestsMax` in the configuration: 10,000 of under 2 KB are 20 MB. */
  queueRequestsMax: 10_000,
  /** Turns given to others before a replica is kept free for a big head: about one batch of an 8B model. */
  skipsMax: 32,
  /** Rounds of turns, the present one included, that a tenant may be owed before replicas are kept free for it. */
  roundsOwedMax: 1.5,
  /** Heads that may be passed over because they do not fit; bounds the work of one decision. */
  lookAheadMax: 64,
  /** Cost of one output token in the unit of `Estimate.cost`, as in `estimate.ts`. */
  outputTokenCost: 4,
  /**
   * An answer that has passed its prediction is expected to go on for this share of what it has: half, because lengths
   * are long-tailed. So the answer is charged a few times and not at every token, and no less fairly (docs/adr/0003).
   */
  overrunRatio: 0.5,
  /**
   * How far ahead a turn is charged: the tokens that an answer brings between two turns of the pool, times this, over the
   * spread of the pool's lengths (`charge-ahead.ts`). Infinity charges every prediction whole. Chosen on seeds 1 to 18
   * with 19 and 64 slots; from 0.35 to 0.9 the gaps are the same within their noise (docs/adr/0037).
   */
  aheadTurns: 0.5,
  /** Tokens of an answer between two charges; with 32 the gap of two tenants is wider than the token counter's. */
  stepTokens: 8,
  /** KV tokens by which the room of an answer longer than predicted grows: one block of the engine. */
  growKvTokens: 16,
  fairness: 'deficit-round-robin',
  lanes: LANE_DEFAULTS,
  areLaneBoundsKept: true,
  /** No CoDel: a ticket that waits is dropped by nothing but its expiry. */
  codel: undefined,
} as const

export interface DispatcherOptions {
  readonly queueRequestsMax: number
  readonly skipsMax: number
  readonly roundsOwedMax: number
  readonly lookAheadMax: number
  readonly outputTokenCost: number
  readonly overrunRatio: number
  readonly aheadTurns: number
  readonly stepTokens: number
  readonly growKvTokens: number
  readonly fairness: FairnessName
  readonly lanes: LaneOptions
  /** False in observe-only mode: `noPlaceFor` tells of a lane over its bounds, and only the shared queue bounds it. */
  readonly areLaneBoundsKept: boolean
  /** Drops heads of a standing queue; undefined for none. */
  readonly codel: CodelOptions | undefined
}
