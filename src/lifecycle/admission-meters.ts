import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import type { EngineSpeed } from '../domain/engine-speed.ts'
import type { NoPlace } from '../domain/no-place.ts'
import type { Refusal } from '../domain/outcome.ts'
import { meanCostOf, type Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type {
  AdmissionPool,
  AdmissionQuestion,
  AdmissionWorld,
  CalibratedTerms,
} from '../policy/admission/admission-world.ts'
import type { WaitQuestion } from '../policy/admission/predicted-wait.ts'
import type { PlanningFacts } from '../policy/planning/make-plan.ts'
import type { PeerOutlook } from '../policy/routing/peer-outlook.ts'
import type { ObservedSpeed } from '../policy/twin/observed-speed.ts'
import { whyPoolDenies } from './fleet/denied-pool.ts'
import { pickPool } from './fleet/pick-pool.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import { makePlanningFacts, smallest } from './planning-facts.ts'
import type { Policies } from './policies.ts'
import { plannedSpend } from './spending.ts'

/**
 * Admission's questions, answered by the platform's meters: fleet and routing say which pool, the wait predictor says
 * how long, the dispatcher says whether there is a place, budgets and calibration say the rest. One object for a
 * platform; it keeps nothing of its own.
 */
export class AdmissionMeters implements AdmissionWorld {
  readonly planning: PlanningFacts
  readonly #policies: Policies

  constructor(policies: Policies) {
    this.#policies = policies
    this.planning = makePlanningFacts(policies)
  }

  poolFor(now: Instant, asked: AdmissionQuestion, plan: Plan): AdmissionPool | undefined {
    const { request, release, poolId } = asked
    if (plan.releaseId !== release?.id) {
      const known = pickPool(this.#policies, now, request, plan.releaseId)
      return known && this.#poolOf(now, request, known)
    }
    return poolId === undefined ? undefined : this.#poolOf(now, request, this.#known(poolId))
  }

  waitUs(now: Instant, { request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): number {
    const known = this.#known(poolId)
    const inTurnUs = known.wait.waitUs(now, this.#waitQuestion(request, poolId, plan))
    const behindOwnUs = this.#policies.dispatcher.lastingWaitUs(poolId, request, plan.estimate)
    return awayUs(now, known) + Math.max(inTurnUs, behindOwnUs)
  }

  waitWithoutOwnUs(now: Instant, { request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): number {
    const known = this.#known(poolId)
    return awayUs(now, known) + known.wait.waitWithoutOwnUs(now, this.#waitQuestion(request, poolId, plan))
  }

  /** Microseconds in this gateway's own queue; 0 for a pool that is gone. */
  ownWaitUs(now: Instant, request: Request, poolId: string, plan: Plan): number {
    const wait = this.#policies.poolsById.get(poolId)?.wait
    return wait?.waitUs(now, this.#waitQuestion(request, poolId, plan)) ?? 0
  }

  noPlaceFor({ request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): NoPlace | undefined {
    const isReady = request.retrieval === undefined
    return this.#policies.dispatcher.noPlaceFor(poolId, request, plan.estimate, isReady)
  }

  termsFor({ request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): CalibratedTerms {
    const { promptTokens } = plan.estimate
    return this.#policies.calibration.termsFor({ poolId, sloName: request.slo.name, promptTokens })
  }

  budgetRefusal(now: Instant, asked: AdmissionQuestion, tokens: number, plan: Plan): Refusal | undefined {
    const { budgets, standings } = this.#policies
    return budgets.refusalFor(now, standings.scopesOf(asked.request), tokens, plannedSpend(asked.price, plan))
  }

  budgetTokensMax({ request }: AdmissionQuestion): number {
    const { budgets, standings } = this.#policies
    return budgets.tokensMaxOf(standings.of(request).scopes)
  }

  #known(poolId: string): PoolPolicies {
    const known = this.#policies.poolsById.get(poolId)
    assert(known !== undefined, 'a pool that was chosen is there in the same instant')
    return known
  }

  #poolOf(now: Instant, request: Request, known: PoolPolicies): AdmissionPool {
    const { dispatcher } = this.#policies
    const { pool, speed, speedAlone, kvTokensMax, outlook, twins } = known
    const load = dispatcher.likelyLoadAt(pool.id)
    const speedNow = load === undefined ? speed : speed.under(load)
    const deniedBecause = whyPoolDenies(this.#policies, now, request, known)
    return {
      poolId: pool.id,
      ...(deniedBecause !== undefined && { deniedBecause }),
      // A region that has just refused is not asked again at once: that would only cost the request its time.
      readyReplicaCount:
        outlook?.isStandingBack(now) === true ? 0 : (dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0),
      // Another region's report does not say whether one of its replicas is idle.
      hasIdleReplica: outlook === undefined && dispatcher.hasIdleReplica(pool.id, smallest(this.#policies, request)),
      kvTokensMax,
      speed: outlook === undefined ? speedNow : new PeerSpeed(speed, outlook),
      speedAlone: twins?.hopefulAt(now) ?? speedAlone,
    }
  }

  #waitQuestion(request: Request, poolId: string, plan: Plan): WaitQuestion {
    const { dispatcher, standings } = this.#policies
    const { band, key } = request
    const facts = dispatcher.poolFacts(poolId)
    return {
      share: dispatcher.scaledShare(poolId, standings.of(request).share),
      band,
      cost: meanCostOf(plan.estimate),
      shareUs: plan.estimate.shareUs,
      debt: dispatcher.debtOf(poolId, key.id, band),
      hasRoom: (facts?.openReplicaCount ?? 0) > 0,
      replicaCount: facts?.replicaParts ?? 0,
    }
  }
}

/** The way to the pool and, for another region, the queue there: both come on top of our own queue. */
function awayUs(now: Instant, { outlook, roundTripUs }: PoolPolicies): number {
  return outlook === undefined ? roundTripUs : outlook.waitUs(now) + outlook.roundTripUs
}

/** A region's engines: first tokens as the region reports them, the pace after them as we have seen it. */
class PeerSpeed implements EngineSpeed {
  readonly #seen: ObservedSpeed
  readonly #outlook: PeerOutlook

  constructor(seen: ObservedSpeed, outlook: PeerOutlook) {
    this.#seen = seen
    this.#outlook = outlook
  }

  tokenUs(contextTokens: number): number {
    return this.#seen.tokenUs(contextTokens)
  }

  prefillUs(uncachedTokens: number): number {
    return this.#outlook.prefillUs(uncachedTokens)
  }
}
