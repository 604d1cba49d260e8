import type { FairnessName } from '../fairness/fairness.ts'
import { LANE_DEFAULTS, type LaneOptions } from '../fairness/lane.ts'

export const DISPATCHER_DEFAULTS = {
  /** Tickets in all lanes together (MAX_QUEUE_SIZE): 10,000 of under 2 KB are 20 MB. */
  queueDepthMax: 10_000,
  /** Turns given to others before a replica is kept free for a big head: about one batch of an 8B model. */
  skipsMax: 32,
  /** Heads that may be passed over because they do not fit; bounds the work of one decision. */
  lookAheadMax: 64,
  /** Cost of one output token in the unit of `Estimate.cost`: DESIGN.md's w. */
  outputTokenCost: 4,
  /** KV tokens by which the room of an answer longer than predicted grows: one block of the engine. */
  growKvTokens: 16,
  fairness: 'deficit-round-robin',
  lanes: LANE_DEFAULTS,
} as const

export interface DispatcherOptions {
  readonly queueDepthMax: number
  readonly skipsMax: number
  readonly lookAheadMax: number
  readonly outputTokenCost: number
  readonly growKvTokens: number
  readonly fairness: FairnessName
  readonly lanes: LaneOptions
}
