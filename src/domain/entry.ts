import type { Instant } from '../base/clock.ts'
import type { RetrievalOutcome } from './corpus.ts'
import type { Usage } from './delta.ts'
import type { Outcome, Refusal } from './outcome.ts'
import type { Placement } from './placement.ts'
import type { Band } from './tenant.ts'

/**
 * What happened, once, in order. The journal is the only source for metrics, logs, spans, ledger, audit and reports:
 * whoever wants to know subscribes, and nobody measures beside it. Entries hold no prompt text and no secret.
 */
export type Entry =
  | Arrived
  | Admitted
  | RetrievalEnded
  | AnswerLookedUp
  | AnswerChecked
  | Granted
  | AttemptEnded
  | Settled
  | RungChanged
  | OfflineSheddingChanged
  | PoolReported
  | ReplicaReported
  | ReplicaHealth
  | FleetChanged
  | PlatformChanged
  | RolloutChanged
  | ShadowEnded
  | HoldoutEvaluated
  | BreakerChanged
  | DocumentIndexed
  | FaultSeen

interface Stamp {
  readonly at: Instant
}

export interface Arrived extends Stamp {
  readonly kind: 'arrived'
  readonly ticketId: string
  readonly tenantId: string
  readonly keyId: string
  readonly model: string
  readonly band: Band
  readonly promptTokens: number
  readonly isStreamed: boolean
  /** The region that sent it on to us; absent when it came from a client. */
  readonly origin?: string | undefined
}

export interface Admitted extends Stamp {
  readonly kind: 'admitted'
  readonly ticketId: string
  readonly tenantId: string
  readonly releaseId: string
  readonly poolId: string
  readonly rung: string
  /** Durations from `at`, as predicted when it was admitted. */
  readonly predictedWaitUs: number
  readonly predictedTtftUs: number
  readonly predictedFinishUs: number
  readonly because: string
}

/** Passages were looked for while the ticket waited. */
export interface RetrievalEnded extends Stamp {
  readonly kind: 'retrieval-ended'
  readonly ticketId: string
  readonly tenantId: string
  readonly outcome: RetrievalOutcome
  readonly passageCount: number
  readonly passageTokens: number
  readonly tookUs: number
  readonly budgetUs: number
  readonly because: string
}

/** `hit`: answered from the cache. `checked`: it was known, and is answered anew to compare. `skipped`: could not be asked. */
export type AnswerLookup = 'hit' | 'miss' | 'checked' | 'skipped'

/** Has this tenant been answered this before? */
export interface AnswerLookedUp extends Stamp {
  readonly kind: 'answer-looked-up'
  readonly ticketId: string
  readonly tenantId: string
  readonly outcome: AnswerLookup
  /** Of the nearest question that was known; undefined when none was. */
  readonly similarity: number | undefined
  readonly tookUs: number
  /** What an engine did not have to do, by what it did the first time; nothing unless it was a hit. */
  readonly saved: Usage
  readonly because: string
}

/** A known answer was made anew: would the cache have been right? */
export interface AnswerChecked extends Stamp {
  readonly kind: 'answer-checked'
  readonly tenantId: string
  readonly isSame: boolean
  /** Of the two questions, and of the two answers. */
  readonly similarity: number
  readonly likeness: number
}

export interface Granted extends Stamp {
  readonly kind: 'granted'
  readonly ticketId: string
  readonly releaseId: string
  readonly replicaId: string
  readonly attempt: number
  readonly waitedUs: number
  readonly because: string
  /** The numbers behind the choice of the replica. */
  readonly placement?: Placement | undefined
}

/** One try at one replica is over; a ticket may have more than one. */
export interface AttemptEnded extends Stamp {
  readonly kind: 'attempt-ended'
  readonly ticketId: string
  readonly releaseId: string
  readonly replicaId: string
  readonly attempt: number
  readonly ending: 'finished' | 'refused' | 'lost' | 'cancelled'
  readonly because: string
}

/** The one entry that tells a ticket's whole story in numbers. */
export interface Settled extends Stamp {
  readonly kind: 'settled'
  readonly ticketId: string
  readonly tenantId: string
  readonly keyId: string
  readonly model: string
  /** The model that answered, when a rung put a smaller one in its place. */
  readonly servedModel: string
  /** The release that answered, or would have; undefined when none was chosen. */
  readonly releaseId: string | undefined
  readonly poolId: string | undefined
  readonly replicaId: string | undefined
  readonly band: Band
  readonly bid: number
  readonly rung: string
  readonly outcome: Outcome
  readonly because: string
  readonly refusal: Refusal | undefined
  readonly usage: Usage
  readonly attempts: number
  readonly arrivedAt: Instant
  readonly admittedAt: Instant | undefined
  readonly grantedAt: Instant | undefined
  readonly firstTokenAt: Instant | undefined
  readonly lastTokenAt: Instant | undefined
  readonly deadlineAt: Instant
  readonly gaps: GapView | undefined
}

/** Inter-token times of one answer: counts by bucket of GAP_BUCKETS_US, and their sum. */
export interface GapView {
  readonly counts: Uint32Array
  readonly sumUs: number
  readonly maxUs: number
}

/** A tenant's dwelling rung at a pool moved. */
export interface RungChanged extends Stamp {
  readonly kind: 'rung-changed'
  readonly tenantId: string
  readonly poolId: string
  readonly from: string
  readonly to: string
  readonly depth: number
  readonly pressure: number
  readonly because: string
}

/** A pool began or ceased to refuse everybody's offline work. */
export interface OfflineSheddingChanged extends Stamp {
  readonly kind: 'offline-shedding-changed'
  readonly poolId: string
  readonly isShed: boolean
  readonly pressure: number
  readonly because: string
}

/** How a pool stands, once a tick; counts are since the start. */
export interface PoolReported extends Stamp {
  readonly kind: 'pool-reported'
  readonly poolId: string
  readonly queuedCount: number
  readonly queuedCost: number
  readonly heldCount: number
  readonly readyReplicaCount: number
  readonly pressure: number
  readonly drainPerUs: number
  readonly falseRejects: number
  readonly rightRejects: number
  /** Of the whole platform: admitted and observed to the end, and of those late. */
  readonly observedCount: number
  readonly falseAdmits: number
}

export interface ReplicaReported extends Stamp {
  readonly kind: 'replica-reported'
  readonly replicaId: string
  readonly isReady: boolean
  readonly because: string
}

/** How much a replica may be used from here on: outliers are ejected for a while, newcomers start slowly. */
export interface ReplicaHealth extends Stamp {
  readonly kind: 'replica-health'
  readonly replicaId: string
  readonly health: 'away' | 'warming' | 'steady' | 'ejected' | 'trial' | 'draining'
  readonly because: string
}

/** Models, pools or replicas came, went, or are on their way out: who did it, and why. */
export interface FleetChanged extends Stamp {
  readonly kind: 'fleet-changed'
  readonly what:
    | 'model-put'
    | 'model-removed'
    | 'pool-added'
    | 'pool-closing'
    | 'pool-removed'
    | 'replica-added'
    | 'replica-draining'
    | 'replica-kept'
    | 'replica-removed'
  /** Of the model, pool or replica. */
  readonly name: string
  /** The replica's pool. */
  readonly poolId: string | undefined
  readonly by: string
  readonly because: string
}

/** A release gets more of its model's requests, all of them, or none. */
export interface RolloutChanged extends Stamp {
  readonly kind: 'rollout-changed'
  readonly model: string
  readonly change: 'started' | 'promoted-step' | 'promoted' | 'rolled-back' | 'undone' | 'held' | 'resumed'
  /** The stable release, and the one that is tried. */
  readonly from: string
  readonly to: string
  readonly step: number
  /** Of the requests, that `to` gets from here on. */
  readonly percent: number
  /** `judge`, `drift`, `config`, or the id of the key that asked. */
  readonly by: string
  readonly because: string
  readonly evidence?: readonly RolloutEvidence[]
}

/** A copy of a request was answered by a release that its client did not see. Numbers only: no text of either answer. */
export interface ShadowEnded extends Stamp {
  readonly kind: 'shadow-ended'
  /** The request that was copied. */
  readonly ticketId: string
  readonly model: string
  readonly releaseId: string
  readonly outcome: Outcome
  readonly outputTokens: number
  readonly primaryOutputTokens: number
  /** Absent when one of the two has no whole answer, or no text (in simulation). */
  readonly difference?: AnswerDifference
  readonly because: string
}

export interface AnswerDifference {
  readonly isEqual: boolean
  /** Share of the shorter answer that both begin with. */
  readonly samePrefixRatio: number
  /** Shadow's length ÷ primary's, in characters. */
  readonly lengthRatio: number
  /** Words that both have ÷ words that either has. */
  readonly sameWordsRatio: number
}

/** A release was asked an item of its holdout set. */
export interface HoldoutEvaluated extends Stamp {
  readonly kind: 'holdout-evaluated'
  readonly model: string
  readonly releaseId: string
  readonly itemId: string
  /** 0 … 1. */
  readonly score: number
}

/** How many times its stake a bet on "worse" has won, and at how many it ends. */
export interface RolloutEvidence {
  readonly metric: string
  readonly pairs: number
  readonly won: number
  readonly wonInStep: number
  readonly bound: number
  readonly boundInStep: number
  readonly proven: number | undefined
}

export interface PlatformChanged extends Stamp {
  readonly kind: 'platform-changed'
  readonly state: 'starting' | 'ready' | 'draining' | 'stopped'
  readonly because: string
}

/** Something that requests use is left alone for a while after failures (`open`), or is used again (`closed`). */
export interface BreakerChanged extends Stamp {
  readonly kind: 'breaker-changed'
  readonly what: string
  readonly state: 'open' | 'closed'
}

/** A document is in its corpus, or will never be. */
export interface DocumentIndexed extends Stamp {
  readonly kind: 'document-indexed'
  readonly tenantId: string
  readonly status: 'completed' | 'failed'
  readonly passageCount: number
  readonly tookUs: number
  readonly because: string
}

/** Something broke that no ticket could be blamed for, or that failed one: counted, and the process goes on. */
export interface FaultSeen extends Stamp {
  readonly kind: 'fault-seen'
  readonly where: string
  readonly because: string
  readonly ticketId: string | undefined
}
