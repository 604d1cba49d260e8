import type { Instant } from '../../base/clock.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Release } from '../../domain/fleet.ts'
import type { ModelPrice } from '../../domain/ledger.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Plan } from '../../domain/plan.ts'
import type { Request } from '../../domain/request.ts'
import type { RungTerms } from '../../domain/rung.ts'
import type { PlanningFacts } from '../planning/make-plan.ts'
import type { Calibrated, Lateness, Patience, Prediction } from './feasibility.ts'
import type { ReturnSlot } from './return-slots.ts'

/**
 * What must admission know? The request in question comes as one value (`AdmissionQuestion`); everything else is asked
 * of the world, which is made once for a platform. Admission imports neither lanes nor replicas nor budgets, and the
 * caller can put anything in their place.
 *
 * Obligations of an `AdmissionWorld`: its answers change nothing, and within one instant the same question has the same
 * answer.
 */
export interface AdmissionWorld {
  readonly planning: PlanningFacts
  /** The pool that would run this plan. */
  poolFor(now: Instant, asked: AdmissionQuestion, plan: Plan): AdmissionPool | undefined
  /** Microseconds until the plan's turn at this pool: `PredictedWait.waitUs`, and the way there. */
  waitUs(now: Instant, asked: AdmissionQuestion, pool: AdmissionPool, plan: Plan): number
  /**
   * The same behind those of its tenant who were told to come back meanwhile; undefined when nobody was, for who comes on
   * a slot of his own, and for a tenant that asks for no more than its share.
   */
  waitWithReturns(now: Instant, asked: AdmissionQuestion, pool: AdmissionPool, plan: Plan): BehindReturns | undefined
  /** The same, if the tenant had nothing else waiting. */
  waitWithoutOwnUs(now: Instant, asked: AdmissionQuestion, pool: AdmissionPool, plan: Plan): number
  /** Why the lane or the shared queue would not take the plan; undefined when there is a place. */
  noPlaceFor(asked: AdmissionQuestion, pool: AdmissionPool, plan: Plan): NoPlace | undefined
  /** How far predictions for this pool and SLO class can be trusted. */
  termsFor(asked: AdmissionQuestion, pool: AdmissionPool, plan: Plan): CalibratedTerms
  /** Why a budget would not pay this many tokens of this plan, or its price; undefined when all would. */
  budgetRefusal(now: Instant, asked: AdmissionQuestion, tokens: number, plan: Plan): Refusal | undefined
  /** The most tokens that these budgets ever pay for at once; Infinity without limits. */
  budgetTokensMax(asked: AdmissionQuestion): number
}

/** The wait behind those who are expected back, and whose doing it is if that is too long. */
export interface BehindReturns {
  readonly waitUs: number
  readonly blame: 'tenant' | 'platform'
}

/** One request, and what is settled about it before any plan is made. */
export interface AdmissionQuestion {
  readonly request: Request
  /** What the request is sold at. */
  readonly price: ModelPrice
  /** The release chosen for the model that the request names; undefined when there is none. */
  readonly release: Release | undefined
  /** The pool chosen for that release; undefined when there is none. */
  readonly poolId: string | undefined
  /** Durations from now that the request's promises leave. */
  readonly patience: Patience
  readonly rungs: readonly RungTerms[]
  /** The tenant's dwelling rung at this pool. */
  readonly dwellingDepth: number
  /** The platform is under pressure and takes no offline work of any tenant. */
  readonly isOfflineShed: boolean
  /** False to ask what an engine could run at all: budgets and places in the queue are then not asked. */
  readonly isEnforced: boolean
  /** 0 … 1, from a random stream: spreads retries. */
  readonly jitter: number
  /** The slot on which the request comes back, in time. */
  readonly slot?: ReturnSlot | undefined
}

/** What admission must know of the pool that would run a plan, as values of this instant. */
export interface AdmissionPool {
  readonly poolId: string
  readonly readyReplicaCount: number
  /** Until a pool without a ready replica should have one; absent where one is ready, or none is to be expected. */
  readonly wakingUs?: number
  /** Why every replica would deny the request; absent where one may answer. */
  readonly deniedBecause?: string
  /** An eligible replica has nothing to do, and no ticket is waiting for it. */
  readonly hasIdleReplica: boolean
  /** Until one more answer like this finds room that answers now hold; absent where it finds room now. */
  readonly releaseUs?: number
  /** The most KV that one replica can hold, in tokens: a larger plan never fits. */
  readonly kvTokensMax: number
  /** Speed of an engine as busy as usual, and of one that is all alone. */
  readonly speed: EngineSpeed
  readonly speedAlone: EngineSpeed
}

export interface CalibratedTerms {
  readonly ttft: Calibrated
  readonly finish: Calibrated
}

/** One plan on one pool, and what would come of it. */
export interface Try {
  readonly plan: Plan
  readonly pool: AdmissionPool
  readonly predicted: Prediction
  readonly patience: Patience
  readonly terms: CalibratedTerms
  readonly lateness: Lateness
  /** `kept`: it would fit, were its room not kept for those who were told to come back. */
  readonly ending: 'fits' | 'idle' | 'late' | 'kept' | 'infeasible' | 'no-place' | 'too-big'
  /** With the ending `kept`: by how much it would be late behind them, and who is to blame. */
  readonly behindReturns?: { readonly lateness: Lateness; readonly blame: BehindReturns['blame'] } | undefined
  /** With the ending `no-place`: why. */
  readonly noPlace: NoPlace | undefined
}
