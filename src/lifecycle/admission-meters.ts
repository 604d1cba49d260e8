import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import type { EngineSpeed } from '../domain/engine-speed.ts'
import type { NoPlace } from '../domain/no-place.ts'
import type { Refusal } from '../domain/outcome.ts'
import { meanCostOf, meanEngineUsOf, type Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type {
  AdmissionPool,
  AdmissionQuestion,
  AdmissionWorld,
  BehindReturns,
  CalibratedTerms,
} from '../policy/admission/admission-world.ts'
import type { WaitQuestion } from '../policy/admission/predicted-wait.ts'
import type { SlotQuestion } from '../policy/admission/return-slots.ts'
import type { RoomWait } from '../policy/dispatch/room-wait.ts'
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
      return known && this.#poolOf(now, request, known, plan)
    }
    return poolId === undefined ? undefined : this.#poolOf(now, request, this.#known(poolId), plan)
  }

  waitUs(now: Instant, { request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): number {
    const known = this.#known(poolId)
    const wakingUs = this.#wakingUs(now, known)
    if (wakingUs !== undefined) return wakingUs + behindUs(now, known, plan)
    const room = this.#policies.dispatcher.roomWait(now, poolId, request, plan.estimate)
    const inTurnUs = known.wait.waitUs(now, this.#waitQuestion(request, poolId, plan, room))
    return awayUs(now, known) + Math.max(inTurnUs, this.#behindOwnUs(request, poolId, room), room.readingUs)
  }

  waitWithReturns(
    now: Instant,
    asked: AdmissionQuestion,
    { poolId }: AdmissionPool,
    plan: Plan,
  ): BehindReturns | undefined {
    const { request, slot } = asked
    const { returnSlots } = this.#policies
    if (returnSlots.count === 0) return undefined
    const known = this.#known(poolId)
    const room = this.#policies.dispatcher.roomWait(now, poolId, request, plan.estimate)
    const question = this.#waitQuestion(request, poolId, plan, room)
    const isOnSlot = slot !== undefined && question.cost <= slot.cost * SLOT_COST_RATIO_MAX
    if (isOnSlot || question.hasRoom || question.replicaCount === 0) return undefined
    // Who asks for no more than its share is held back for nobody; two requests at once are no habit yet.
    const demand = known.demand.of(now, request.tenant.id)
    if (demand <= (returnSlots.hasClaims(returnLaneOf(request)) ? 1 : DEMAND_AT_ONCE)) return undefined
    const cost = question.cost + known.wait.ofTenant(question.share)
    const expected = returnSlots.expected(now, poolId, { ...question, cost })
    if (expected === undefined) return undefined
    const waitUs = awayUs(now, known) + known.wait.waitUs(now, { ...question, expected })
    return { waitUs, blame: 2 * expected.ownCost >= expected.cost ? 'tenant' : 'platform' }
  }

  /** The slot that this plan would claim, were it given `afterUs` from now. */
  slotQuestion(request: Request, poolId: string, plan: Plan): Omit<SlotQuestion, 'name' | 'afterUs'> {
    const { dispatcher, standings } = this.#policies
    const share = dispatcher.scaledShare(poolId, standings.of(request).share)
    return { poolId, laneId: returnLaneOf(request), share, band: request.band, cost: meanCostOf(plan.estimate) }
  }

  /** How long a newcomer would wait behind everybody who has a slot, at the share that slots may have. */
  waitBehindSlotsUs(now: Instant, request: Request, poolId: string, plan: Plan): number {
    const known = this.#known(poolId)
    const room = this.#policies.dispatcher.roomWait(now, poolId, request, plan.estimate)
    const question = this.#waitQuestion(request, poolId, plan, room)
    const cost = question.cost + known.wait.ofTenant(question.share)
    const expected = this.#policies.returnSlots.claimed(now, poolId, { ...question, cost })
    return awayUs(now, known) + known.wait.waitUs(now, { ...question, expected })
  }

  waitWithoutOwnUs(now: Instant, { request }: AdmissionQuestion, { poolId }: AdmissionPool, plan: Plan): number {
    const known = this.#known(poolId)
    const wakingUs = this.#wakingUs(now, known)
    if (wakingUs !== undefined) return wakingUs
    const room = this.#policies.dispatcher.roomWait(now, poolId, request, plan.estimate)
    return awayUs(now, known) + known.wait.waitWithoutOwnUs(now, this.#waitQuestion(request, poolId, plan, room))
  }

  /** Until a pool that has no ready replica should have one; undefined for all others. */
  wakingUs(now: Instant, poolId: string): number | undefined {
    const known = this.#policies.poolsById.get(poolId)
    return known && this.#wakingUs(now, known)
  }

  /** Microseconds in this gateway's own queue; 0 for a pool that is gone. */
  ownWaitUs(now: Instant, request: Request, poolId: string, plan: Plan): number {
    const wait = this.#policies.poolsById.get(poolId)?.wait
    const room = this.#policies.dispatcher.roomWait(now, poolId, request, plan.estimate)
    return wait?.waitUs(now, this.#waitQuestion(request, poolId, plan, room)) ?? 0
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

  /** Of a pool without a ready replica that will have one. */
  #wakingUs(now: Instant, { pool, scaler }: PoolPolicies): number | undefined {
    const isAwake = (this.#policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0) > 0
    return isAwake ? undefined : scaler.wakingUs(now)
  }

  #known(poolId: string): PoolPolicies {
    const known = this.#policies.poolsById.get(poolId)
    assert(known !== undefined, 'a pool that was chosen is there in the same instant')
    return known
  }

  #poolOf(now: Instant, request: Request, known: PoolPolicies, plan: Plan): AdmissionPool {
    const { dispatcher } = this.#policies
    const { pool, speed, speedAlone, kvTokensMax, twins } = known
    const outlook = known.outlook?.at(now)
    const load = dispatcher.likelyLoadAt(pool.id)
    const speedNow = load === undefined ? speed : speed.under(load)
    const deniedBecause = whyPoolDenies(this.#policies, now, request, known)
    const wakingUs = this.#wakingUs(now, known)
    const { perAnswerUs } = dispatcher.roomWait(now, pool.id, request, plan.estimate)
    return {
      poolId: pool.id,
      ...(perAnswerUs > 0 && { releaseUs: perAnswerUs }),
      ...(wakingUs !== undefined && { wakingUs }),
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

  /** Of a tenant whose own lasting answers keep it out: one of them must end for each that waits, and for this one. */
  #behindOwnUs({ key, band }: Request, poolId: string, { isBarred, perAnswerUs }: RoomWait): number {
    if (!isBarred) return 0
    return perAnswerUs * (1 + (this.#policies.dispatcher.laneOf(poolId, key.id, band)?.count ?? 0))
  }

  /** Where clients do come back, their claims keep the queue in bounds; a stretch of few ends must not break their slots. */
  #isKeptByReturns(request: Request): boolean {
    const { returnSlots } = this.#policies
    return returnSlots.count > 0 && returnSlots.isBelieved(returnLaneOf(request))
  }

  #waitQuestion(request: Request, poolId: string, plan: Plan, room: RoomWait): WaitQuestion {
    const { dispatcher, standings } = this.#policies
    const { band, key } = request
    const facts = dispatcher.poolFacts(poolId)
    return {
      share: dispatcher.scaledShare(poolId, standings.of(request).share),
      band,
      cost: meanCostOf(plan.estimate),
      shareUs: plan.estimate.shareUs,
      debt: dispatcher.debtOf(poolId, key.id, band),
      hasRoom: (facts?.openReplicaCount ?? 0) > 0 && (room.isBarred || room.perAnswerUs === 0),
      replicaCount: facts?.replicaParts ?? 0,
      turns: this.#isKeptByReturns(request) ? undefined : facts?.runningTurns(),
      lastsUs: meanEngineUsOf(plan.estimate),
    }
  }
}

/** Who comes back with the same body may be planned larger, as lengths are learned meanwhile; with more he is a newcomer. */
const SLOT_COST_RATIO_MAX = 2

/** Demand ÷ share of a tenant of whom nobody was told to come back yet. */
const DEMAND_AT_ONCE = 2

/** Those of one tenant who ask for the same model in the same band. */
export const returnLaneOf = ({ model, tenant, band }: Request): string => `${model}\n${tenant.id}\n${band}`

/** What waits for the first replica of a pool that wakes goes before it. */
function behindUs(now: Instant, { wait, offered }: PoolPolicies, { estimate }: Plan): number {
  const drainPerUs = wait.drainOfOne(now, offered.costPerShareUs)
  return drainPerUs > 0 ? Math.ceil((wait.backlogCost + meanCostOf(estimate)) / drainPerUs) : 0
}

/** The way to the pool and, for another region, the queue there: both come on top of our own queue. */
function awayUs(now: Instant, { outlook: region, roundTripUs }: PoolPolicies): number {
  const outlook = region?.at(now)
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
