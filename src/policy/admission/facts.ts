import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Plan } from '../../domain/plan.ts'
import type { RungTerms } from '../../domain/rung.ts'
import type { PlanningFacts } from '../planning/make-plan.ts'
import type { Calibrated, Lateness, Patience, Prediction } from './feasibility.ts'

/**
 * What must admission know? Everything it decides on comes through here, as values and questions: it imports neither
 * lanes nor replicas nor budgets, and whoever calls it can put anything in their place.
 */

/** What admission must know of the pool that would run a plan: from routing, dispatch, lanes and meters. */
export interface PoolFacts {
  readonly poolId: string
  readonly readyReplicaCount: number
  /** An eligible replica has nothing to do, and nobody is waiting for it. */
  readonly hasIdleReplica: boolean
  /** The most KV that one replica can hold, in tokens: what is bigger fits never. */
  readonly kvTokensMax: number
  /** As busy as usual, and all alone. */
  readonly speed: EngineSpeed
  readonly speedAlone: EngineSpeed
  /** Until its turn, for this cost and KV: `PredictedWait.waitUs`, or longer when KV frees later than the queue. */
  readonly waitUs: (plan: Plan) => number
  readonly waitWithoutOwnUs: (plan: Plan) => number
  /** Why its lane (or the whole buffer) would not take it; undefined when there is room. */
  readonly laneRefusal: (plan: Plan) => Refusal | undefined
  readonly calibrated: (plan: Plan) => { readonly ttft: Calibrated; readonly finish: Calibrated }
}

export interface AdmissionFacts {
  readonly planning: PlanningFacts
  readonly rungs: readonly RungTerms[]
  /** The tenant's dwelling rung at this pool. */
  readonly dwellingDepth: number
  /** Platform-wide pressure: nobody's offline work is taken. */
  readonly isOfflineShed: boolean
  /** The pool that would run this plan. */
  readonly poolOf: (plan: Plan) => PoolFacts | undefined
  /** Why a scope would not pay so many tokens; undefined when all would. `Budgets.refusalFor`. */
  readonly budgetRefusal: (tokens: number) => Refusal | undefined
  /** 0 … 1, from a random stream: spreads retries. */
  readonly jitter: number
}

/** One plan on one pool, and what would come of it. */
export interface Try {
  readonly plan: Plan
  readonly pool: PoolFacts
  readonly predicted: Prediction
  readonly patience: Patience
  readonly lateness: Lateness
  readonly ending: 'fits' | 'idle' | 'late' | 'infeasible' | 'lane-full' | 'too-big'
}
