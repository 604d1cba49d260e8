import type { Instant } from '../base/clock.ts'
import { NANO_PER_USD } from '../domain/ledger.ts'
import type { Refusal } from '../domain/outcome.ts'
import { meanCostOf } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { RungTerms } from '../domain/rung.ts'
import { type AdmittedVerdict, decideAdmission, type Verdict } from '../policy/admission/admission.ts'
import type { AdmissionQuestion } from '../policy/admission/admission-world.ts'
import { patienceOf } from '../policy/admission/feasibility.ts'
import { NO_REPLICA_RETRY_US, withoutPlace } from '../policy/admission/refusals.ts'
import { retryAfterUs } from '../policy/admission/retry-after.ts'
import type { ReturnSlot } from '../policy/admission/return-slots.ts'
import type { Reservation } from '../policy/budgets/budgets.ts'
import { Quota } from '../policy/budgets/quota.ts'
import type { Asking } from '../policy/budgets/scope-budget.ts'
import type { Offer } from '../policy/dispatch/offer.ts'
import { mayAnswer } from '../policy/planning/make-plan.ts'
import { returnLaneOf } from './admission-meters.ts'
import { hasUsablePeer, pickOtherRegion, pickPool } from './fleet/pick-pool.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import { observePressure } from './learning/observe-pressure.ts'
import type { Platform } from './platform.ts'
import type { Policies } from './policies.ts'
import { endSlot, slotOf, withSlot } from './return-slot.ts'
import { isHealthy, type PickedRelease, pickRelease } from './rollout/pick-release.ts'
import { isGated } from './screening/screen-request.ts'
import { plannedSpend } from './spending.ts'
import { Admitted, type Ticket } from './ticket.ts'

/**
 * May it come in? Puts the question to admission and carries out the verdict in one instant: the budget is reserved and
 * the ticket joins its lane, or nothing is taken at all.
 *
 * In observe-only mode the verdict is journalled and not enforced: every request comes in on the full rung, whatever its
 * budget, its lane or its predicted lateness, as long as an engine could run it at all and the shared queue has a place.
 */
export type Admission =
  | { readonly kind: 'admitted'; readonly admitted: Admitted }
  | { readonly kind: 'rejected'; readonly refusal: Refusal }
  | ShortAdmission

/** Gateways share the budget, and this one holds too little of it: the store may have more. */
export interface ShortAdmission {
  readonly kind: 'short'
  readonly asking: readonly Asking[]
}

/** `isLast`: the store was asked, and the answer is final. */
export function admit(platform: Platform, ticket: Ticket, isLast: true): Exclude<Admission, ShortAdmission>
export function admit(platform: Platform, ticket: Ticket): Admission
export function admit(platform: Platform, ticket: Ticket, isLast = false): Admission {
  if (platform.isDraining) return { kind: 'rejected', refusal: SHUTTING_DOWN }
  const { policies } = platform
  const now = platform.world.clock.now()
  const { request } = ticket
  const picked = pickRelease(policies, request, request.model)
  ticket.release = picked
  const pool = picked && pickPool(policies, now, request, picked.release.id)
  const slot = slotOf(policies, now, request)
  const asked = { ...questionOf(policies, now, ticket, pool), slot }
  const here = decideAdmission(now, asked, platform.admission)
  const short = isLast ? undefined : shortOf(platform, now, request, here)
  if (short !== undefined) return short
  const verdict = spilled(platform, now, ticket, here) ?? here
  observePressure(platform, ticket, verdict)
  const carriedOut = policies.mode === 'observe' ? wavedThrough(platform, now, asked, verdict) : verdict
  endSlot(policies, request, carriedOut, slot)
  if (carriedOut.kind === 'admitted') return enter(platform, ticket, now, carriedOut, slot)
  const refusal = withSlot(platform, now, request, carriedOut)
  const isBroken = slot !== undefined && refusal.code === 'predicted-late'
  return { kind: 'rejected', refusal: isBroken ? { ...refusal, isSlotBroken: true } : refusal }
}

/** Nothing has been taken or learned yet when a budget is short of a slice: the decision is made again. */
function shortOf(
  { policies, world }: Platform,
  now: Instant,
  request: Request,
  verdict: Verdict,
): ShortAdmission | undefined {
  if ((world.slices ?? world.balances) === undefined || verdict.kind === 'admitted' || policies.mode === 'observe')
    return undefined
  const { code, detail } = verdict.refusal
  if (!BUDGET_CODES.has(code)) return undefined
  const tokens = Number(detail?.['requested_tokens'] ?? 0)
  const short = policies.budgets.askForMore(now, policies.standings.scopesOf(request), tokens)
  const asking = code === 'limits-unknown' ? short.filter((one) => one instanceof Quota) : short
  return asking.length === 0 ? undefined : { kind: 'short', asking }
}

const BUDGET_CODES: ReadonlySet<string> = new Set([
  'rate-limit-requests',
  'rate-limit-tokens',
  'concurrency-limit',
  'limits-unknown',
])

/** Codes of refusals that another region may answer otherwise. */
const SPILLABLE: ReadonlySet<string> = new Set(['predicted-late', 'band-shed', 'no-replica', 'replica-denied'])

/** A request refused here goes to another region if it is admitted on what that region reports; else undefined. */
function spilled(platform: Platform, now: Instant, ticket: Ticket, here: Verdict): Verdict | undefined {
  const { policies, admission } = platform
  const { request, release: picked } = ticket
  if (here.kind === 'admitted' || picked === undefined || !SPILLABLE.has(here.refusal.code)) return undefined
  const away = pickOtherRegion(policies, now, request, picked.release.id)
  if (away === undefined || here.nearest?.pool.poolId === away.pool.id) return undefined
  const verdict = decideAdmission(now, questionOf(policies, now, ticket, away), admission)
  if (verdict.kind === 'rejected') return undefined
  return { ...verdict, because: `refused here (${here.refusal.code}), sent to ${away.pool.region}: ${verdict.because}` }
}

function enter(
  platform: Platform,
  ticket: Ticket,
  now: Instant,
  verdict: AdmittedVerdict,
  slot: ReturnSlot | undefined,
): Admission {
  const { policies, turnstile } = platform
  const { request } = ticket
  const { plan, poolId, predicted, patience } = verdict
  const { expiresAt, isReady, mayNotWait } = waitTermsOf(platform, ticket, poolId, now)
  const offer: Offer = {
    ticketId: ticket.id,
    poolId,
    tenant: request.tenant,
    key: request.key,
    band: request.band,
    bid: request.bid,
    estimate: plan.estimate,
    arrivedAt: request.arrivedAt,
    expiresAt,
    isReady,
    mayNotWait,
    prefixHashes: request.prefixHashes,
    sessionHash: request.sessionHash,
  }
  // Admission has asked for the place. It has not where a replica is idle, and not in observe-only mode; there, the
  // dispatcher may still find that the ticket would have to wait and that its bounds leave no room for that.
  const noPlace = turnstile.join(ticket, offer)
  if (noPlace !== undefined)
    return { kind: 'rejected', refusal: withoutPlace(noPlace, predicted.waitUs, policies.jitter()) }
  policies.poolsById.get(poolId)?.denial.admitted(now, request.kind)
  policies.returnSlots.admitted(now, returnLaneOf(request), meanCostOf(plan.estimate))
  if (platform.errands.count > 0 && request.errand === undefined) makeRoom(platform, plan.releaseId, poolId)
  // Observe-only mode lets a tenant in that is over its budget; nothing is held of the budget then.
  const { budgets, mode, standings } = policies
  const scopes = standings.scopesOf(request)
  const spend = plannedSpend(ticket.price, plan)
  const isAffordable = mode === 'enforce' || budgets.refusalFor(now, scopes, verdict.reserveTokens, spend) === undefined
  const reservation = isAffordable ? budgets.reserve(now, scopes, verdict.reserveTokens, spend) : undefined
  const admitted = new Admitted(ticket, { at: now, plan, offer, predicted, patience, reservation })
  ticket.admitted = admitted
  ticket.phase = 'waiting'
  platform.world.journal.record({
    kind: 'admitted',
    at: now,
    ticketId: ticket.id,
    tenantId: request.tenant.id,
    releaseId: plan.releaseId,
    poolId,
    rung: plan.rung.name,
    predictedWaitUs: predicted.waitUs,
    predictedTtftUs: predicted.ttftUs,
    predictedFinishUs: predicted.finishUs,
    reservedTokens: reservation?.tokens,
    ...(slot !== undefined && { isOnSlot: true }),
    because: becauseOf(ticket, verdict, reservation),
  })
  return { kind: 'admitted', admitted }
}

/**
 * How long it may wait for its turn. With a limit of 0 it has its turn at once or none; where it must wait for passages
 * or its verdict first, a turn that is free when these are there.
 */
function waitTermsOf(
  platform: Platform,
  ticket: Ticket,
  poolId: string,
  now: Instant,
): Pick<Offer, 'expiresAt' | 'isReady' | 'mayNotWait'> {
  const { deadlineAt, retrieval, screening, tenant } = ticket.request
  const usualUsMax = Math.min(platform.queueUsMax, tenant.queueUsMax)
  // Whoever may wait at all may wait for a pool that wakes, however late its replica is.
  const waitUsMax =
    usualUsMax === 0 ? 0 : usualUsMax + WAKING_PATIENCE * (platform.admission.wakingUs(now, poolId) ?? 0)
  const isReady = retrieval === undefined && (ticket.check === undefined || !isGated(platform, ticket, poolId))
  if (waitUsMax > 0) return { expiresAt: Math.min(deadlineAt, now + waitUsMax), isReady }
  if (isReady) return { expiresAt: deadlineAt, isReady, mayNotWait: true }
  const foundUs = retrieval === undefined ? 0 : platform.retrievalUsMax
  const judgedUs = screening?.terms.guard?.timeoutUs ?? 0
  return { expiresAt: Math.min(deadlineAt, now + Math.max(foundUs, judgedUs) + LAST_SLACK_US), isReady }
}

/** A replica may take three times as long as usual to start: then its order is given up. */
const WAKING_PATIENCE = 3

/** Passages and verdicts that come at the very end of their time still find the ticket there. */
const LAST_SLACK_US = 10_000

function becauseOf(
  { release: picked }: Ticket,
  { because }: AdmittedVerdict,
  reservation: Reservation | undefined,
): string {
  const why = picked?.because === undefined ? because : `${because}; release: ${picked.because}`
  if (reservation?.isMetered !== true) return why
  const { tokens, nano } = reservation.spend
  return `${why}; holds ${tokens} tokens and ${(nano / NANO_PER_USD).toFixed(6)} dollars of its budgets`
}

/** Calls off the platform's own errands at a release's pools when a request has to wait there. */
function makeRoom({ policies, errands }: Platform, releaseId: string, poolId: string): void {
  if ((policies.dispatcher.poolFacts(poolId)?.queuedCount ?? 0) > 0) errands.makeRoom(releaseId)
}

/** `pool` is the pool that would run the model that the request names. */
function questionOf(
  policies: Policies,
  now: Instant,
  { request, price, release: picked }: Ticket,
  pool: PoolPolicies | undefined,
): AdmissionQuestion {
  return {
    request,
    price,
    release: picked?.release,
    poolId: pool?.pool.id,
    patience: patienceOf(now, request),
    rungs: rungsFor(policies, request, picked),
    dwellingDepth: pool === undefined ? 0 : policies.ladder.depthOf(request.tenant, pool.pool.id),
    isOfflineShed: pool?.shedding.isShed ?? false,
    isEnforced: true,
    jitter: policies.jitter(),
  }
}

/**
 * Where no release of the model has a healthy replica, its smaller model answers, with nothing else given up. A tenant
 * that would rather be refused (`contract: reject`), and a platform without the ladder, keep the rungs as they are.
 */
function rungsFor(policies: Policies, request: Request, picked: PickedRelease | undefined): readonly RungTerms[] {
  const { rungs } = policies
  const [full] = rungs
  const smaller = rungs.find((rung) => rung.isFallbackUsed)
  if (full === undefined || smaller === undefined || request.tenant.contract === 'reject') return rungs
  if (picked === undefined || isHealthy(policies, picked.release.id) || hasUsablePeer(policies, request)) return rungs
  const { fallback } = picked.release
  if (fallback === undefined || !mayAnswer(request, fallback)) return rungs
  return rungs.map((rung) =>
    rung.depth < smaller.depth ? { ...full, ...rungName(smaller), isFallbackUsed: true } : rung,
  )
}

const rungName = ({ name, depth }: RungTerms) => ({ name, depth })

/** Observe only: a request that would have been refused or degraded runs all the same, and in full. */
function wavedThrough(platform: Platform, now: Instant, asked: AdmissionQuestion, verdict: Verdict): Verdict {
  if (verdict.kind === 'admitted' && verdict.rung.depth === 0) return verdict
  const isHopeless = verdict.kind === 'rejected' && verdict.refusal.blame === 'request'
  if (isHopeless && verdict.refusal.code !== 'deadline-infeasible') return verdict
  // With all the time in the world nothing is late: only what no engine can run is refused.
  const waved = decideAdmission(
    now,
    {
      ...asked,
      patience: { ttftUs: Number.POSITIVE_INFINITY, finishUs: Number.MAX_SAFE_INTEGER - now },
      rungs: asked.rungs.slice(0, 1),
      dwellingDepth: 0,
      isOfflineShed: false,
      isEnforced: false,
    },
    platform.admission,
  )
  if (waved.kind === 'rejected') return waved
  const would =
    verdict.kind === 'rejected' ? `been refused: ${verdict.refusal.because}` : `run on the rung ${verdict.rung.name}`
  return { ...waved, because: `observe only; it would have ${would}` }
}

/** When the client of a ticket that lost its place should come back: when a newcomer with its plan would have a turn. */
export function comeBackAfterUs(platform: Platform, { plan, poolId, ticket }: Admitted): number | undefined {
  const { policies, world, admission } = platform
  const waitUs = admission.ownWaitUs(world.clock.now(), ticket.request, poolId, plan)
  // A pool without a ready replica has no end of its wait, and replicas come back all the same.
  const predictedUs = Number.isFinite(waitUs) ? waitUs : NO_REPLICA_RETRY_US
  return retryAfterUs({ predictedUs, affordableUs: 0, jitter: policies.jitter() })
}

const SHUTTING_DOWN: Refusal = {
  code: 'shutting-down',
  because: 'The server is shutting down.',
  blame: 'platform',
  retryAfterUs: 1_000_000,
}
