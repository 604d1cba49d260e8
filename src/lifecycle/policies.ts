import type { Model, Release } from '../domain/fleet.ts'
import type { RungTerms } from '../domain/rung.ts'
import type { Calibration } from '../policy/admission/calibration.ts'
import type { LengthReport } from '../policy/admission/length-report.ts'
import type { ReturnSlots } from '../policy/admission/return-slots.ts'
import type { Budgets } from '../policy/budgets/budgets.ts'
import type { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import type { Ladder } from '../policy/ladder/ladder.ts'
import type { TightestPromise } from '../policy/ladder/tightest-promise.ts'
import type { OfflineTerms } from '../policy/limits/limit.ts'
import type { OfflineWaste } from '../policy/limits/offline-waste.ts'
import type { PriceList } from '../policy/money/price-list.ts'
import type { OutputLengths } from '../policy/planning/output-length.ts'
import type { TenantRatios } from '../policy/planning/tenant-ratios.ts'
import type { Holdout } from '../policy/rollout/holdout.ts'
import type { ModelRollout } from '../policy/rollout/model-rollout.ts'
import type { POOL_CHOICE_DEFAULTS } from '../policy/routing/choose-pool.ts'
import type { Health } from '../policy/routing/health.ts'
import type { RoutingPlacer } from '../policy/routing/placer.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import type { Standings } from './standings.ts'

/**
 * The meters and machines that the stories ask. They live here, side by side, because none of them may know another:
 * `admission-meters.ts` asks them for a decision, `learn.ts` tells them how it ended.
 */
export interface Policies {
  /** Asked at every verdict; only `change-terms.ts` sets it. */
  mode: 'enforce' | 'observe'
  /** Tenants that administrators have paused, and why; only `change-terms.ts` changes it. */
  readonly paused: Map<string, string>
  readonly rungs: readonly RungTerms[]
  readonly ladder: Ladder
  readonly calibration: Calibration
  /** Who was told to come back, and when. */
  readonly returnSlots: ReturnSlots
  /** Counts by prompt length: offered, admitted, refused, late. */
  readonly lengths: LengthReport
  /** The tightest promise of any tenant: the platform's own pressure is measured against it, and limits aim at it. */
  readonly tightestPromise: TightestPromise
  readonly dispatcher: Dispatcher
  readonly budgets: Budgets
  /** What offline turns may have of a replica. */
  readonly offline: OfflineTerms
  /** How much of their work may be thrown away for online tickets. */
  readonly offlineWaste: OfflineWaste
  /** Whose share and whose budgets a request uses. */
  readonly standings: Standings
  readonly outputs: OutputLengths
  readonly prices: PriceList
  /** What there is to run on; the maps below are the fleet's own, live. */
  readonly fleet: Fleet
  readonly models: ReadonlyMap<string, Model>
  readonly releases: ReadonlyMap<string, Release>
  /** By model: how far each tenant's token estimates are off. */
  readonly ratios: ReadonlyMap<string, TenantRatios>
  /** By release: the pools that could run it. `pick-pool.ts` chooses. */
  readonly poolsByRelease: ReadonlyMap<string, readonly PoolPolicies[]>
  /** By model: which of its releases a request gets. A model without a rollout has nothing to choose. */
  readonly rollouts: Map<string, ModelRollout>
  /** By model: questions with known answers, for its releases. */
  readonly holdouts: Map<string, Holdout>
  readonly placer: RoutingPlacer
  /** When requests leave for another region, and how a region takes them back. */
  readonly poolChoice: typeof POOL_CHOICE_DEFAULTS
  readonly health: Health
  readonly poolsById: ReadonlyMap<string, PoolPolicies>
  /** What an output token costs in prompt tokens. */
  readonly outputWeight: number
  /** Spreads retries: 0 … 1 from a random stream. */
  readonly jitter: () => number
  /** Chooses which known answers are made anew: 0 … 1 from a random stream. */
  readonly answerChecks: () => number
}
