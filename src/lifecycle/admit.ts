import { unreachable } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import type { EngineSpeed } from '../domain/engine-speed.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { RungTerms } from '../domain/rung.ts'
import { type AdmittedVerdict, decideAdmission, type Verdict } from '../policy/admission/admission.ts'
import type { AdmissionFacts, PoolFacts } from '../policy/admission/facts.ts'
import { retryAfterUs } from '../policy/admission/retry-after.ts'
import type { Offer } from '../policy/dispatch/offer.ts'
import type { ObservedSpeed } from '../policy/planning/observed-speed.ts'
import type { PeerOutlook } from '../policy/routing/peer-outlook.ts'
import { hasUsablePeer, pickOtherRegion, pickPool } from './fleet/pick-pool.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import { observePressure } from './learning/observe-pressure.ts'
import { planningFacts, smallest } from './plan-request.ts'
import type { Platform } from './platform.ts'
import { currentWaitUs, type Policies, scopesOf, shareOf, waitQuestion } from './policies.ts'
import { chooseRelease, isHealthy, type ReleaseOf } from './rollout/pick-release.ts'
import { Admitted, type Ticket } from './ticket.ts'
import type { NoPlace } from './turnstile.ts'

/**
 * May it come in? Gathers what admission must know, asks it, and carries out the verdict in one instant: the budget is
 * reserved and the ticket joins its lane, or nothing is taken at all.
 *
 * In observe-only mode the verdict is journalled and not enforced: everybody comes in on the full rung, as long as an
 * engine could run it at all.
 */
export type Admission =
  | { readonly kind: 'admitted'; readonly admitted: Admitted }
  | { readonly kind: 'rejected'; readonly refusal: Refusal }

export function admit(platform: Platform, ticket: Ticket): Admission {
  if (platform.isDraining) return { kind: 'rejected', refusal: SHUTTING_DOWN }
  const { policies } = platform
  const now = platform.world.clock.now()
  const { request } = ticket
  const picked = chooseRelease(policies, request, request.model)
  const releaseOf: ReleaseOf = (model) =>
    model === request.model ? picked?.release : chooseRelease(policies, request, model)?.release
  ticket.release = picked
  const asked = picked === undefined ? undefined : pickPool(policies, now, request, picked.release.id)
  const facts = gatherFacts(policies, now, ticket, releaseOf, asked)
  const here = decideAdmission(now, request, facts)
  const verdict = spilled(policies, now, ticket, releaseOf, here) ?? here
  observePressure(platform, ticket, verdict)
  const carriedOut = policies.mode === 'observe' ? wavedThrough(now, request, facts, verdict) : verdict
  return carriedOut.kind === 'admitted' ? enter(platform, ticket, now, carriedOut) : carriedOut
}

/** Refusals that another region may know better about. */
const SPILLABLE: ReadonlySet<string> = new Set(['predicted-late', 'band-shed', 'no-replica'])

/** Refused here: would another region take it? It is sent there only if it is admitted on what that region says. */
function spilled(
  policies: Policies,
  now: Instant,
  ticket: Ticket,
  releaseOf: ReleaseOf,
  here: Verdict,
): Verdict | undefined {
  const { request, release: picked } = ticket
  if (here.kind === 'admitted' || picked === undefined || !SPILLABLE.has(here.refusal.code)) return undefined
  const away = pickOtherRegion(policies, now, request, picked.release.id)
  if (away === undefined || here.nearest?.pool.poolId === away.pool.id) return undefined
  const verdict = decideAdmission(now, request, gatherFacts(policies, now, ticket, releaseOf, away))
  if (verdict.kind === 'rejected') return undefined
  return { ...verdict, because: `refused here (${here.refusal.code}), sent to ${away.pool.region}: ${verdict.because}` }
}

function enter(platform: Platform, ticket: Ticket, now: Instant, verdict: AdmittedVerdict): Admission {
  const { policies, turnstile } = platform
  const { request } = ticket
  const { plan, poolId, predicted, patience } = verdict
  const waitUsMax = Math.min(platform.queueUsMax, request.tenant.queueUsMax)
  const offer: Offer = {
    ticketId: ticket.id,
    poolId,
    tenant: request.tenant,
    key: request.key,
    band: request.band,
    bid: request.bid,
    estimate: plan.estimate,
    arrivedAt: request.arrivedAt,
    expiresAt: Math.min(request.deadlineAt, now + waitUsMax),
    isReady: request.retrieval === undefined,
    prefixHashes: request.prefixHashes,
    ...(request.sessionHash !== undefined && { sessionHash: request.sessionHash }),
  }
  const noPlace = turnstile.join(ticket, offer)
  if (noPlace !== undefined) return { kind: 'rejected', refusal: refusalFor(platform, request, verdict, noPlace) }
  if (platform.errands.count > 0 && request.errand === undefined) makeRoom(platform, plan.releaseId, poolId)
  // Observe-only lets in who is over its budget; nothing is held for it then.
  const scopes = scopesOf(request)
  const isAffordable =
    policies.mode === 'enforce' || policies.budgets.refusalFor(now, scopes, verdict.reserveTokens) === undefined
  const reservation = isAffordable ? policies.budgets.reserve(now, scopes, verdict.reserveTokens) : undefined
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
    because: becauseOf(ticket, verdict),
  })
  return { kind: 'admitted', admitted }
}

function becauseOf({ release: picked }: Ticket, { because }: AdmittedVerdict): string {
  return picked?.because === undefined ? because : `${because}; release: ${picked.because}`
}

/** Whoever has to wait does not wait for the platform's own errands. */
function makeRoom({ policies, errands }: Platform, releaseId: string, poolId: string): void {
  if ((policies.dispatcher.poolFacts(poolId)?.queuedCount ?? 0) > 0) errands.makeRoom(releaseId)
}

/** `asked` is the pool that would run the model that was asked for. */
function gatherFacts(
  policies: Policies,
  now: Instant,
  ticket: Ticket,
  releaseOf: ReleaseOf,
  asked: PoolPolicies | undefined,
): AdmissionFacts {
  const { request } = ticket
  const releaseId = ticket.release?.release.id
  const scopes = scopesOf(request)
  return {
    planning: { ...planningFacts(policies), releaseOf },
    rungs: rungsFor(policies, request, releaseId),
    dwellingDepth: asked === undefined ? 0 : policies.ladder.depthOf(request.tenant, asked.pool.id),
    isOfflineShed: asked?.shedding.isShed ?? false,
    poolOf: (plan) => {
      const pool = plan.releaseId === releaseId ? asked : pickPool(policies, now, request, plan.releaseId)
      return pool === undefined ? undefined : poolFacts(policies, now, request, pool)
    },
    budgetRefusal: (tokens) => policies.budgets.refusalFor(now, scopes, tokens),
    jitter: policies.jitter(),
  }
}

/**
 * No release of the model has a healthy replica: its smaller model answers, with nothing else given up. Whoever would
 * rather be refused (`contract: reject`), or runs without the ladder, is refused.
 */
function rungsFor(policies: Policies, request: Request, releaseId: string | undefined): readonly RungTerms[] {
  const { rungs } = policies
  const [full] = rungs
  const smaller = rungs.find((rung) => rung.isFallbackUsed)
  if (full === undefined || smaller === undefined || request.tenant.contract === 'reject') return rungs
  if (releaseId === undefined || isHealthy(policies, releaseId) || hasUsablePeer(policies, request)) return rungs
  return rungs.map((rung) =>
    rung.depth < smaller.depth ? { ...full, ...rungName(smaller), isFallbackUsed: true } : rung,
  )
}

const rungName = ({ name, depth }: RungTerms) => ({ name, depth })

function poolFacts(policies: Policies, now: Instant, request: Request, known: PoolPolicies): PoolFacts {
  const { pool, wait, speed, speedAlone, kvTokensMax, outlook } = known
  const facts = policies.dispatcher.poolFacts(pool.id)
  const part = { share: shareOf(request), band: request.band }
  // Another region's queue, and the way there, come on top of our own.
  const awayUs = outlook === undefined ? known.roundTripUs : outlook.waitUs(now) + outlook.roundTripUs
  return {
    poolId: pool.id,
    // A region that has just refused is not asked again at once: that would only cost the request its time.
    readyReplicaCount: outlook?.isStandingBack(now) === true ? 0 : (facts?.readyReplicaCount ?? 0),
    // Whether a replica is idle over there we only know by hearsay.
    hasIdleReplica: outlook === undefined && policies.dispatcher.hasIdleReplica(pool.id, smallest(request)),
    kvTokensMax,
    speed: outlook === undefined ? speed : speedThere(speed, outlook),
    speedAlone,
    waitUs: (plan) => awayUs + wait.waitUs(now, waitQuestion(policies, part, pool.id, plan)),
    waitWithoutOwnUs: (plan) => awayUs + wait.waitWithoutOwnUs(now, waitQuestion(policies, part, pool.id, plan)),
    // The dispatcher has the last word when the ticket joins.
    laneRefusal: () => undefined,
    calibrated: (plan) =>
      policies.calibration.termsFor({
        poolId: pool.id,
        sloName: request.slo.name,
        promptTokens: plan.estimate.promptTokens,
      }),
  }
}

/** First tokens as the region says; the pace after them as we have seen it. */
function speedThere(seen: ObservedSpeed, outlook: PeerOutlook): EngineSpeed {
  return { tokenUs: (context) => seen.tokenUs(context), prefillUs: (uncached) => outlook.prefillUs(uncached) }
}

/** Observe only: what would have been refused or degraded runs all the same, and in full. */
function wavedThrough(now: Instant, request: Request, facts: AdmissionFacts, verdict: Verdict): Verdict {
  if (verdict.kind === 'admitted' && verdict.rung.depth === 0) return verdict
  const isHopeless = verdict.kind === 'rejected' && verdict.refusal.blame === 'request'
  if (isHopeless && verdict.refusal.code !== 'deadline-infeasible') return verdict
  // Nobody is late who has all the time in the world: only what no engine can run is refused.
  const patient: Request = { ...request, band: 'offline', deadlineAt: Number.MAX_SAFE_INTEGER }
  const waved = decideAdmission(now, patient, {
    ...facts,
    rungs: facts.rungs.slice(0, 1),
    dwellingDepth: 0,
    isOfflineShed: false,
    budgetRefusal: () => undefined,
  })
  if (waved.kind === 'rejected') return waved
  const would =
    verdict.kind === 'rejected' ? `been refused: ${verdict.refusal.because}` : `run on the rung ${verdict.rung.name}`
  return { ...waved, because: `observe only; it would have ${would}` }
}

/** When the client of a ticket that lost its place should come back: when a newcomer with its plan would have a turn. */
export function comeBackAfterUs(platform: Platform, { plan, poolId, ticket }: Admitted): number | undefined {
  return turnAfterUs(platform, ticket.request, { plan, poolId })
}

function turnAfterUs(
  platform: Platform,
  request: Request,
  { plan, poolId }: { readonly plan: Plan; readonly poolId: string },
): number | undefined {
  const { policies, world } = platform
  const part = { share: shareOf(request), band: request.band }
  const predictedUs = currentWaitUs(policies, world.clock.now(), part, poolId, plan)
  return retryAfterUs({ predictedUs, affordableUs: 0, jitter: policies.jitter() })
}

/** The dispatcher had no place for it: whose fault is that, and when will there be one? */
function refusalFor(platform: Platform, request: Request, verdict: AdmittedVerdict, noPlace: NoPlace): Refusal {
  const { code, because } = noPlace
  const retryAfterUs = turnAfterUs(platform, request, verdict)
  switch (code) {
    case 'lane-full':
    case 'lane-work-full':
      return { code, because, blame: 'tenant', retryAfterUs }
    case 'queue-full':
    case 'unknown-pool':
      return { code, because, blame: 'platform', retryAfterUs }
    case 'expired-on-arrival':
    case 'fits-no-replica':
      return { code, because, blame: 'request', retryAfterUs: undefined }
    default:
      return unreachable(code)
  }
}

const SHUTTING_DOWN: Refusal = {
  code: 'shutting-down',
  because: 'The server is shutting down.',
  blame: 'platform',
  retryAfterUs: 1_000_000,
}
