import type { Instant } from '../../base/clock.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Plan, Rung } from '../../domain/plan.ts'
import type { RungTerms } from '../../domain/rung.ts'
import { pressureOf } from '../ladder/pressure.ts'
import { isSameWork, makePlan, type Planned } from '../planning/make-plan.ts'
import type { AdmissionPool, AdmissionQuestion, AdmissionWorld, CalibratedTerms, Try } from './admission-world.ts'
import { isFeasibleAlone, type Lateness, latenessOf, type Patience, type Prediction, predict } from './feasibility.ts'
import { isLumpy } from './lumpy-wait.ts'
import {
  bandShed,
  contextTooLong,
  deadlineInfeasible,
  keptForReturns,
  noReplica,
  poolDenied,
  predictedLate,
  tooBigForKv,
  withoutPlace,
} from './refusals.ts'

/**
 * Should we take it, on which rung, and if not, why and when?
 *
 * Take only what will be done in time: a late answer costs as much as a good one and helps nobody (the argument of
 * DAGOR at WeChat, 2018, and of every deadline-aware admitter since). The request is planned on its tenant's dwelling
 * rung and, while that does not fit, on each deeper one; the first plan whose predicted first token and finish fit
 * their promises less the calibrated margin, and for which the queue has a place, is admitted. A tenant whose contract
 * says `reject` is only planned in full. What fits nowhere is refused with the numbers behind it.
 *
 * Three rules go before the prediction. Budgets: who is over his own limit is told so, whatever the platform could do.
 * The idle rule: while an eligible replica is idle and the request alone is feasible, it is neither late nor without
 * room; refusing would be waste, and a bad prediction could never be found out. Infeasible alone: when not even an
 * idle engine could make it, on no rung, it is the request's fault and no retry will help.
 *
 * Pure and complete: it changes nothing, so observe-only mode asks it and goes its own way. The caller reserves the
 * budget and joins the lane in the same instant, and the place that was found is still there. It does not know lanes,
 * replicas or fairness; it asks the world about them (`admission-world.ts`).
 *
 * Laws: L10 (predictions only), and the idle rule as above.
 *
 * Example: deadline in 3 s, margin 10 %, bias 1. Full: wait 2.4 s + answer 1 s = 3.4 > 2.7, no. cap-output: wait
 * 2.3 s + 0.35 s = 2.65 ≤ 2.7: admitted on cap-output. Had it not fitted: retry after 3.4 − 2.7 = 0.7 s or sooner.
 */
export const ADMISSION_DEFAULTS = {
  /** ADMISSION_SAFETY_MARGIN: share of every promise that is kept back at least; calibration only adds to it. */
  safetyMarginRatio: 0.15,
}

export type Verdict = AdmittedVerdict | RejectedVerdict

/** What the meters want to know of every decision, whichever way it went. */
interface Weighed {
  /** What it would cost in full: for `Demand`. Undefined when it could not be planned. */
  readonly offeredCost: number | undefined
  /** On the tenant's dwelling rung, predicted ÷ affordable wait: for `Ladder`. Undefined when no pool was asked. */
  readonly pressure: number | undefined
}

export interface AdmittedVerdict extends Weighed {
  readonly kind: 'admitted'
  readonly plan: Plan
  readonly rung: Rung
  readonly poolId: string
  /** To reserve now: prompt and P90 of the output. */
  readonly reserveTokens: number
  readonly predicted: Prediction
  readonly patience: Patience
  readonly because: string
}

export interface RejectedVerdict extends Weighed {
  readonly kind: 'rejected'
  readonly refusal: Refusal
  /** The try that came nearest, for the audit of false rejects; undefined when nothing was planned. */
  readonly nearest: Try | undefined
}

export function decideAdmission(now: Instant, asked: AdmissionQuestion, world: AdmissionWorld): Verdict {
  const walk = walkRungs(now, asked, world)
  const weighed = { offeredCost: offeredCostOf(asked, world, walk), pressure: pressureIn(walk) }
  if (walk.budgetRefusal !== undefined) {
    return { kind: 'rejected', refusal: walk.budgetRefusal, nearest: undefined, ...weighed }
  }
  if (walk.taken !== undefined) return { ...admit(asked, world, walk.taken), ...weighed }
  return { kind: 'rejected', ...refuse(now, asked, world, walk), ...weighed }
}

interface Walk {
  readonly tries: readonly Try[]
  readonly firstPlan: Plan | undefined
  readonly unplannable: Planned | undefined
  readonly budgetRefusal: Refusal | undefined
  readonly taken: Try | undefined
  /** Why a pool that was asked would deny the request; undefined when none would. */
  readonly deniedBecause?: string | undefined
}

/** From the dwelling rung down, until a plan can be taken. */
function walkRungs(now: Instant, asked: AdmissionQuestion, world: AdmissionWorld): Walk {
  const tries: Try[] = []
  let unplannable: Planned | undefined
  let firstPlan: Plan | undefined
  let lastPlan: Plan | undefined
  let deniedBecause: string | undefined
  for (const rung of rungsToTry(asked)) {
    const planned = planOn(asked, rung, world)
    if (planned.kind === 'unplannable') {
      unplannable ??= planned
      continue
    }
    const { plan } = planned
    if (lastPlan !== undefined && isSameWork(plan, lastPlan)) continue
    if (firstPlan === undefined) {
      firstPlan = plan
      // Deeper rungs only ever ask for less, so a budget that fits here fits there.
      const budgetRefusal = asked.isEnforced
        ? world.budgetRefusal(now, asked, budgetTokensOf(asked, world, plan), plan)
        : undefined
      if (budgetRefusal !== undefined) return { tries, firstPlan, unplannable, budgetRefusal, taken: undefined }
    }
    lastPlan = plan
    const pool = world.poolFor(now, asked, plan)
    if (pool === undefined || (pool.readyReplicaCount === 0 && pool.wakingUs === undefined)) continue
    if (pool.deniedBecause !== undefined) {
      deniedBecause ??= pool.deniedBecause
      continue
    }
    const attempt = tryPlan(now, asked, world, plan, pool)
    tries.push(attempt)
    if (attempt.ending === 'idle' || (attempt.ending === 'fits' && !isShed(asked, rung))) {
      return { tries, firstPlan, unplannable, budgetRefusal: undefined, taken: attempt }
    }
  }
  return { tries, firstPlan, unplannable, budgetRefusal: undefined, taken: undefined, deniedBecause }
}

function planOn({ request, release }: AdmissionQuestion, rung: RungTerms, world: AdmissionWorld): Planned {
  return makePlan(request, rung, world.planning, release)
}

function offeredCostOf(asked: AdmissionQuestion, world: AdmissionWorld, walk: Walk): number | undefined {
  if (walk.firstPlan?.rung.depth === 0) return walk.firstPlan.estimate.cost
  const full = asked.rungs[0]
  const planned = full === undefined ? undefined : planOn(asked, full, world)
  return planned?.kind === 'planned' ? planned.plan.estimate.cost : walk.firstPlan?.estimate.cost
}

function pressureIn(walk: Walk): number | undefined {
  const { lateness, pool } = walk.tries[0] ?? {}
  // A pool that sleeps is not pressed: lower rungs would not wake it sooner.
  if (lateness === undefined || pool?.wakingUs !== undefined) return undefined
  return pressureOf({ predictedUs: lateness.waitUs, affordableUs: lateness.affordableWaitUs })
}

/** What a plan may use at most in nine cases of ten: what budgets are asked to hold. */
export function reserveTokensOf(plan: Plan): number {
  return plan.estimate.promptTokens + plan.estimate.outputTokensHigh
}

/**
 * What budgets are asked to hold. A prompt that was not counted and looks too big for them ever to pay for is let in
 * when they are full, unless it is too big at its least: what it really used is settled at the end.
 */
function budgetTokensOf(asked: AdmissionQuestion, world: AdmissionWorld, plan: Plan): number {
  const reserveTokens = reserveTokensOf(plan)
  const { promptTokensMin, outputTokensHigh } = plan.estimate
  if (promptTokensMin === undefined) return reserveTokens
  const budgetTokensMax = world.budgetTokensMax(asked)
  if (reserveTokens <= budgetTokensMax) return reserveTokens
  return Math.max(Math.floor(budgetTokensMax), promptTokensMin + outputTokensHigh)
}

function rungsToTry({ request, rungs, dwellingDepth }: AdmissionQuestion): readonly RungTerms[] {
  return request.tenant.contract === 'reject' ? rungs.slice(0, 1) : rungs.slice(dwellingDepth)
}

/** Shedding is of the dwelling rung: walking down to it on one request's behalf sheds nobody. */
function isShed({ request, dwellingDepth, isOfflineShed }: AdmissionQuestion, rung: RungTerms): boolean {
  if (request.band === 'offline' && isOfflineShed) return true
  return rung.depth === dwellingDepth && rung.shedBands.includes(request.band)
}

function tryPlan(now: Instant, asked: AdmissionQuestion, world: AdmissionWorld, full: Plan, pool: AdmissionPool): Try {
  const plan = withinKv(full, pool)
  const { request } = asked
  const patience = patienceAt(asked.patience, pool)
  const timed = predict(plan, request.choiceCount, pool.speed, world.waitUs(now, asked, pool, plan))
  const predicted: Prediction = isLumpy(pool.releaseUs, patience) ? { ...timed, isLumpy: true } : timed
  const terms = onSlotTerms(asked, world.termsFor(asked, pool, plan))
  const lateness = latenessOf(predicted, patience, terms)
  const ending = endingOf({ ...asked, patience }, plan, pool, lateness)
  const behindReturns =
    ending === 'fits' ? behindReturnsOf(now, asked, world, { plan, pool, patience, terms }) : undefined
  if (behindReturns !== undefined)
    return { plan, pool, predicted, patience, terms, lateness, ending: 'kept', behindReturns, noPlace: undefined }
  const noPlace = ending === 'fits' && asked.isEnforced ? world.noPlaceFor(asked, pool, plan) : undefined
  return { plan, pool, predicted, patience, terms, lateness, ending: noPlace ? 'no-place' : ending, noPlace }
}

/** Who was told to come now was told so with the whole margin: half of it is for what happened since. */
function onSlotTerms({ slot }: AdmissionQuestion, terms: CalibratedTerms): CalibratedTerms {
  if (slot === undefined) return terms
  const halved = (one: CalibratedTerms['ttft']) => ({ ...one, marginRatio: one.marginRatio / 2 })
  return { ttft: halved(terms.ttft), finish: halved(terms.finish) }
}

/** Late behind those who were told to come back? Undefined when it would be in time all the same. */
function behindReturnsOf(
  now: Instant,
  asked: AdmissionQuestion,
  world: AdmissionWorld,
  { plan, pool, patience, terms }: Pick<Try, 'plan' | 'pool' | 'patience' | 'terms'>,
): Try['behindReturns'] {
  const behind = asked.isEnforced ? world.waitWithReturns(now, asked, pool, plan) : undefined
  if (behind === undefined) return undefined
  const lateness = latenessOf(predict(plan, asked.request.choiceCount, pool.speed, behind.waitUs), patience, terms)
  return lateness.lateUs > 0 ? { lateness, blame: behind.blame } : undefined
}

/** Whoever wakes a pool cannot have the first token that awake ones promise: only the deadline counts. */
const patienceAt = (patience: Patience, { wakingUs }: AdmissionPool): Patience =>
  wakingUs === undefined ? patience : { ...patience, ttftUs: Number.POSITIVE_INFINITY }

/** A prompt that was not counted may be shorter than the engine's memory: it is planned as filling it, and not refused. */
function withinKv(plan: Plan, { kvTokensMax }: AdmissionPool): Plan {
  const { estimate } = plan
  const roomTokens = kvTokensMax - estimate.outputTokensHigh
  const isDoubtful = estimate.promptTokensMin !== undefined && roomTokens >= 1
  if (!isDoubtful || estimate.promptTokens <= roomTokens) return plan
  const promptTokens = Math.floor(roomTokens)
  return {
    ...plan,
    estimate: { ...estimate, promptTokens, cachedTokens: Math.min(estimate.cachedTokens, promptTokens) },
  }
}

function endingOf(
  { request, patience }: AdmissionQuestion,
  plan: Plan,
  pool: AdmissionPool,
  lateness: Lateness,
): Try['ending'] {
  if (reserveTokensOf(plan) > pool.kvTokensMax) return 'too-big'
  if (!isFeasibleAlone(plan, request, pool.speedAlone, patience)) return 'infeasible'
  if (pool.hasIdleReplica) return 'idle'
  return lateness.lateUs > 0 ? 'late' : 'fits'
}

/**
 * The shallowest rung on which the same work is asked for: who has no passages to lose is not served less by a rung that
 * trims them, and is not told so.
 */
function truthfulRung(asked: AdmissionQuestion, world: AdmissionWorld, plan: Plan): Rung {
  for (const rung of asked.rungs.slice(0, plan.rung.depth)) {
    const planned = planOn(asked, rung, world)
    if (planned.kind === 'planned' && isSameWork(planned.plan, plan)) return planned.plan.rung
  }
  return plan.rung
}

function admit(asked: AdmissionQuestion, world: AdmissionWorld, taken: Try): Omit<AdmittedVerdict, keyof Weighed> {
  const { pool, predicted, patience, lateness, ending } = taken
  const rung = truthfulRung(asked, world, taken.plan)
  const plan = { ...taken.plan, rung }
  const spareMs = Math.round(-lateness.lateUs / 1_000)
  const because =
    ending === 'idle'
      ? 'an eligible replica is idle and the request alone is feasible'
      : `predicted to meet its ${lateness.promise} with ${spareMs} ms beyond the margin`
  const reserveTokens = budgetTokensOf(asked, world, plan)
  return { kind: 'admitted', plan, rung, poolId: pool.poolId, reserveTokens, predicted, patience, because }
}

/** Of all reasons the one that helps most: what is least late, then a full queue, then what can never be. */
function refuse(
  now: Instant,
  asked: AdmissionQuestion,
  world: AdmissionWorld,
  walk: Walk,
): { refusal: Refusal; nearest: Try | undefined } {
  const { tries, unplannable } = walk
  const { request, jitter } = asked
  const fitting = tries.find((attempt) => attempt.ending === 'fits')
  if (fitting !== undefined) return { refusal: bandShed(asked, fitting), nearest: fitting }
  let late: Try | undefined
  for (const attempt of tries) {
    if (attempt.ending !== 'late') continue
    if (late === undefined || attempt.lateness.lateUs < late.lateness.lateUs) late = attempt
  }
  const kept = tries.find((attempt) => attempt.ending === 'kept')
  if (kept !== undefined) return { refusal: keptForReturns(asked, kept), nearest: kept }
  if (late !== undefined) return { refusal: predictedLate(now, asked, world, late), nearest: late }
  const placeless = tries.find((attempt) => attempt.noPlace !== undefined)
  if (placeless?.noPlace !== undefined)
    return { refusal: withoutPlace(placeless.noPlace, placeless.predicted.waitUs, jitter), nearest: placeless }
  const infeasible = tries.findLast((attempt) => attempt.ending === 'infeasible')
  if (infeasible !== undefined) return { refusal: deadlineInfeasible(now, request, infeasible), nearest: infeasible }
  const tooBig = tries.find((attempt) => attempt.ending === 'too-big')
  if (tooBig !== undefined) return { refusal: tooBigForKv(tooBig), nearest: tooBig }
  if (walk.deniedBecause !== undefined) return { refusal: poolDenied(walk.deniedBecause), nearest: undefined }
  if (unplannable?.kind === 'unplannable' && tries.length === 0) {
    return { refusal: contextTooLong(request, unplannable), nearest: undefined }
  }
  return { refusal: noReplica(request, jitter), nearest: undefined }
}
