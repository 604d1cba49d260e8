import type { Instant } from '../base/clock.ts'
import type { TraceContext } from '../base/trace-context.ts'
import type { RetrievalOutcome } from './corpus.ts'
import type { CostClosed, SecondClosed } from './cost-entry.ts'
import type { Usage } from './delta.ts'
import type { Outcome, Refusal } from './outcome.ts'
import type { Placement } from './placement.ts'
import type { Trim } from './plan.ts'
import type { PlatformEntry } from './platform-entry.ts'
import type { RequestShape } from './request-shape.ts'
import type { AutoscaleReported, ScaleOrdered } from './scale-entry.ts'
import type { AbuseNoticed, AnswerScreened, GuardAnswered, PassagesJudged, Screened } from './screening-entry.ts'
import type { BackloggedTenant, WaitingKeys } from './share-path.ts'
import type { Band } from './tenant.ts'

/**
 * An entry records one event. The journal of entries is the only source for metrics, logs, spans, ledger, audit and
 * reports; no other code measures. Entries contain no prompt text and no secret.
 */
export type Entry =
  | Arrived
  | AdmittedEntry
  | RetrievalEnded
  | AnswerLookedUp
  | Screened
  | PassagesJudged
  | AnswerScreened
  | GuardAnswered
  | AbuseNoticed
  | AnswerChecked
  | Granted
  | AttemptEnded
  | Settled
  | SecondClosed
  | CostClosed
  | RungChanged
  | OfflineSheddingChanged
  | PoolReported
  | ReplicaReported
  | ReplicaHealth
  | ReplicaDenied
  | FleetChanged
  | RolloutChanged
  | ShadowEnded
  | HoldoutEvaluated
  | FaultSeen
  | AutoscaleReported
  | ScaleOrdered
  | PlatformEntry

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
  /** The region that sent the request to this one; absent when the request came from a client. */
  readonly origin?: string | undefined
  /** Absent for the platform's own errands, and where the gateway was not reached. */
  readonly shape?: RequestShape
  /** The caller's trace, where it named one. */
  readonly trace?: TraceContext
}

export interface AdmittedEntry extends Stamp {
  readonly kind: 'admitted'
  readonly ticketId: string
  readonly tenantId: string
  readonly releaseId: string
  readonly poolId: string
  readonly rung: string
  /** Durations from `at`, as predicted at admission. */
  readonly predictedWaitUs: number
  readonly predictedTtftUs: number
  readonly predictedFinishUs: number
  /** Tokens that the ticket's budgets hold until it ends; undefined where nothing is held (observe-only mode). */
  readonly reservedTokens: number | undefined
  /** It came back when it was told to. */
  readonly isOnSlot?: boolean
  readonly because: string
}

/** The search for passages ended, while the ticket waited. */
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

/**
 * `hit`: answered from the cache. `checked`: in the cache, but generated again to compare. `skipped`: the cache did not
 * reply.
 */
export type AnswerLookup = 'hit' | 'miss' | 'checked' | 'skipped'

/** The answer cache was asked for an answer to this question. */
export interface AnswerLookedUp extends Stamp {
  readonly kind: 'answer-looked-up'
  readonly ticketId: string
  readonly tenantId: string
  readonly outcome: AnswerLookup
  /** Similarity of the nearest cached question; undefined when there was none. */
  readonly similarity: number | undefined
  readonly tookUs: number
  /** Work that no engine had to do, as measured for the cached answer; zero unless it was a hit. */
  readonly saved: Usage
  readonly because: string
}

/** A cached answer was generated again and compared: was the cached one right? */
export interface AnswerChecked extends Stamp {
  readonly kind: 'answer-checked'
  readonly tenantId: string
  readonly isSame: boolean
  /** Similarity of the two questions, then of the two answers. */
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
  /** The rung of the plan that this attempt runs, and the region of its replica. */
  readonly rung?: string
  readonly region?: string
  /** What the plan leaves out of the request; absent when it leaves out nothing. */
  readonly trim?: Trim
  /** Why there is an attempt after the first. */
  readonly again?: string
}

/** One attempt at one replica has ended; a ticket may have several attempts. */
export interface AttemptEnded extends Stamp {
  readonly kind: 'attempt-ended'
  readonly ticketId: string
  readonly releaseId: string
  readonly replicaId: string
  readonly attempt: number
  readonly ending: 'finished' | 'refused' | 'lost' | 'cancelled'
  readonly because: string
  /** Weighted tokens that the platform bears: of an attempt that was lost, or that the platform called off. */
  readonly unpaidCost: number
}

/** A ticket has ended. This entry has all figures of the ticket. */
export interface Settled extends Stamp {
  readonly kind: 'settled'
  readonly ticketId: string
  readonly tenantId: string
  readonly keyId: string
  readonly model: string
  /** The model that answered; a rung may have replaced the requested one. */
  readonly servedModel: string
  /** The release that answered, or was chosen to; undefined when none was chosen. */
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
  /** Weighted tokens of the work that engines did for it, as fairness counts: 0 when none did any. */
  readonly cost: number
  /** GPU memory that its keys and values had at its end; absent where no engine worked on it, or bytes are unknown. */
  readonly kvBytes?: number
  readonly attempts: number
  readonly arrivedAt: Instant
  readonly admittedAt: Instant | undefined
  readonly grantedAt: Instant | undefined
  readonly firstTokenAt: Instant | undefined
  readonly lastTokenAt: Instant | undefined
  readonly deadlineAt: Instant
  readonly gaps: GapView | undefined
  /** Whether the promise was kept; undefined where none was made, or the client did not wait for it. */
  readonly isKept: boolean | undefined
  /** A screen blocked it before admission: it counts against its budgets as a request without tokens. */
  readonly isCounted?: boolean
}

/** Inter-token times of one answer: counts by bucket of GAP_BUCKETS_US, and their sum. */
export interface GapView {
  readonly counts: Uint32Array
  readonly sumUs: number
  readonly maxUs: number
}

/** A tenant moved to another rung at a pool for some time. */
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

/** A pool began or stopped refusing offline requests of all tenants. */
export interface OfflineSheddingChanged extends Stamp {
  readonly kind: 'offline-shedding-changed'
  readonly poolId: string
  readonly isShed: boolean
  readonly pressure: number
  readonly because: string
}

/** The state of a pool, once a tick; counts are since the start. */
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
  /** Of the whole platform: admitted tickets observed to their end, and how many of these were late. */
  readonly observedCount: number
  readonly falseAdmits: number
  /**
   * Work of the pool's engines, in the time that full engines take for it, and the time in which they could have worked
   * so. Absent where no engine of the pool says how much it does.
   */
  readonly workUs?: number
  readonly workableUs?: number
  /**
   * Tenants with interactive or standard tickets waiting, a hundred at most, and the share of the pool that is each one's
   * among all such tenants; absent when nobody waits.
   */
  readonly backlogged?: readonly BackloggedTenant[]
  /** Who waits, by key; absent when nobody does. */
  readonly waiting?: WaitingKeys
  /** Price of the pool's replicas together; absent where no price is known. */
  readonly usdPerHour?: number
}

export interface ReplicaReported extends Stamp {
  readonly kind: 'replica-reported'
  readonly replicaId: string
  readonly isReady: boolean
  readonly because: string
}

/** How much a replica may be used from now on: outliers are ejected for a while, new replicas start slowly. */
export interface ReplicaHealth extends Stamp {
  readonly kind: 'replica-health'
  readonly replicaId: string
  readonly health: 'away' | 'warming' | 'steady' | 'ejected' | 'trial' | 'draining'
  readonly because: string
}

/** A replica's engine began to deny us (a wrong key or address, a used-up quota), or answers again. */
export interface ReplicaDenied extends Stamp {
  readonly kind: 'replica-denied'
  readonly replicaId: string
  readonly poolId: string
  readonly isDenied: boolean
  readonly because: string
}

/** A model, pool or replica was added, is leaving, or was removed: by whom, and why. */
export interface FleetChanged extends Stamp {
  readonly kind: 'fleet-changed'
  readonly what:
    | 'model-put'
    | 'model-removed'
    | 'pool-added'
    | 'pool-dedicated'
    | 'pool-scaled'
    | 'pool-closing'
    | 'pool-removed'
    | 'replica-added'
    | 'replica-draining'
    | 'replica-kept'
    | 'replica-removed'
  /** Name of the model, pool or replica. */
  readonly name: string
  /** The replica's pool. */
  readonly poolId: string | undefined
  readonly by: string
  readonly because: string
}

/** A release gets a larger share of its model's requests, all of them, or none. */
export interface RolloutChanged extends Stamp {
  readonly kind: 'rollout-changed'
  readonly model: string
  readonly change: 'started' | 'promoted-step' | 'promoted' | 'rolled-back' | 'undone' | 'held' | 'resumed'
  /** The stable release, and the release on trial. */
  readonly from: string
  readonly to: string
  readonly step: number
  /** Share of the requests that `to` gets from now on. */
  readonly percent: number
  /** `judge`, `drift`, `config`, or the id of the administrator's key. */
  readonly by: string
  readonly because: string
  readonly evidence?: readonly RolloutEvidence[]
}

/** A release answered a copy of a request, unseen by the client. Numbers only: no text of either answer. */
export interface ShadowEnded extends Stamp {
  readonly kind: 'shadow-ended'
  /** The request that was copied. */
  readonly ticketId: string
  readonly model: string
  readonly releaseId: string
  readonly outcome: Outcome
  readonly outputTokens: number
  readonly primaryOutputTokens: number
  /** Absent when one of the two answers is incomplete, or has no text (in simulation). */
  readonly difference?: AnswerDifference
  readonly because: string
}

export interface AnswerDifference {
  readonly isEqual: boolean
  /** Share of the shorter answer that both begin with. */
  readonly samePrefixRatio: number
  /** Shadow's length ÷ primary's, in characters. */
  readonly lengthRatio: number
  /** Words in both answers ÷ words in either. */
  readonly sameWordsRatio: number
}

/** A release answered an item of its holdout set. */
export interface HoldoutEvaluated extends Stamp {
  readonly kind: 'holdout-evaluated'
  readonly model: string
  readonly releaseId: string
  readonly itemId: string
  /** 0 … 1. */
  readonly score: number
}

/** How many times its stake a bet on "worse" has won, and the multiple at which the bet ends. */
export interface RolloutEvidence {
  readonly metric: string
  readonly pairs: number
  readonly won: number
  readonly wonInStep: number
  readonly bound: number
  readonly boundInStep: number
  readonly proven: number | undefined
}

/** An unexpected error, with or without a ticket: counted, and the process goes on. */
export interface FaultSeen extends Stamp {
  readonly kind: 'fault-seen'
  readonly where: string
  readonly because: string
  readonly ticketId: string | undefined
}
