import type { Instant } from '../base/clock.ts'
import type { Model, Release } from '../domain/fleet.ts'
import { meanCostOf, type Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { RungTerms } from '../domain/rung.ts'
import { type SharePath, sharePathOf } from '../domain/share-path.ts'
import type { Band, Key, Tenant } from '../domain/tenant.ts'
import type { Calibration } from '../policy/admission/calibration.ts'
import type { LengthReport } from '../policy/admission/length-report.ts'
import type { WaitQuestion } from '../policy/admission/predicted-wait.ts'
import type { Budgets } from '../policy/budgets/budgets.ts'
import type { Scope } from '../policy/budgets/scope-budget.ts'
import type { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import type { Ladder } from '../policy/ladder/ladder.ts'
import type { OutputLengths } from '../policy/planning/output-length.ts'
import type { TokenRatio } from '../policy/planning/token-ratio.ts'
import type { Holdout } from '../policy/rollout/holdout.ts'
import type { ModelRollout } from '../policy/rollout/model-rollout.ts'
import type { POOL_CHOICE_DEFAULTS } from '../policy/routing/choose-pool.ts'
import type { Health } from '../policy/routing/health.ts'
import type { RoutingPlacer } from '../policy/routing/placer.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'

/**
 * The meters and machines that the stories ask. They live here, side by side, because none of them may know another:
 * `admit.ts` gathers their facts for a decision, `learn.ts` tells them how it ended.
 */
export interface Policies {
  readonly mode: 'enforce' | 'observe'
  readonly rungs: readonly RungTerms[]
  readonly ladder: Ladder
  readonly calibration: Calibration
  /** How prompts of each length fare. */
  readonly lengths: LengthReport
  /** The tightest first-token promise of any tenant: the platform's own pressure is measured against it. */
  readonly tightestTtftUs: number
  readonly dispatcher: Dispatcher
  readonly budgets: Budgets
  readonly outputs: OutputLengths
  /** What there is to run on; the maps below are its own, live. */
  readonly fleet: Fleet
  readonly models: ReadonlyMap<string, Model>
  readonly releases: ReadonlyMap<string, Release>
  readonly ratios: ReadonlyMap<string, TokenRatio>
  /** By release: the pools that could run it. `pick-pool.ts` chooses. */
  readonly poolsByRelease: ReadonlyMap<string, readonly PoolPolicies[]>
  /** By model: which of its releases a request gets. Models without one have nothing to choose. */
  readonly rollouts: Map<string, ModelRollout>
  /** By model: questions with known answers, for its releases. */
  readonly holdouts: ReadonlyMap<string, Holdout>
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

/** Where a caller stands in the tree of shares, and whose budgets it spends from. */
interface Standing {
  readonly tenant: Tenant
  readonly share: SharePath
  readonly scopes: readonly Scope[]
}

/** Asked several times for every request, and the same until the configuration changes: then keys are new objects. */
const standings = new WeakMap<Key, Standing>()

function standingOf({ tenant, key }: Request): Standing {
  const known = standings.get(key)
  if (known?.tenant === tenant) return known
  const standing: Standing = {
    tenant,
    share: sharePathOf(tenant, key),
    scopes: [
      { id: tenant.id, noun: 'tenant', allowance: tenant.allowance },
      { id: `${tenant.id}/${key.id}`, noun: 'key', allowance: key.allowance },
    ],
  }
  standings.set(key, standing)
  return standing
}

export const shareOf = (request: Request): SharePath => standingOf(request).share

export const scopesOf = (request: Request): readonly Scope[] => standingOf(request).scopes

/** Who asks how long a wait would be. */
interface Asker {
  readonly share: SharePath
  readonly band: Band
}

export function waitQuestion(policies: Policies, part: Asker, poolId: string, plan: Plan): WaitQuestion {
  const facts = policies.dispatcher.poolFacts(poolId)
  return {
    share: part.share,
    band: part.band,
    cost: meanCostOf(plan.estimate),
    shareUs: plan.estimate.shareUs,
    debt: policies.dispatcher.debtOf(poolId, part.share.key.id, part.band),
    hasRoom: (facts?.openReplicaCount ?? 0) > 0,
    replicaCount: facts?.readyReplicaCount ?? 0,
  }
}

/** How long somebody who came now with this plan would wait: what a truthful retry-after says. */
export function currentWaitUs(policies: Policies, now: Instant, part: Asker, poolId: string, plan: Plan): number {
  const wait = policies.poolsById.get(poolId)?.wait.waitUs(now, waitQuestion(policies, part, poolId, plan))
  return wait ?? 0
}
