import type { Instant } from '../base/clock.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Plan } from '../domain/plan.ts'
import { canRepeat } from '../domain/request.ts'
import { predict } from '../policy/admission/feasibility.ts'
import { otherPoolOf } from './fleet/lost-pool.ts'
import { pickPool } from './fleet/pick-pool.ts'
import { lighterPlan, planForRelease } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import { shelterOf } from './rollout/pick-release.ts'
import type { Admitted, Attempt } from './ticket.ts'

/**
 * Is there another try, where, when and on which terms?
 *
 *   how the attempt ended                  where                       when                    terms
 *   lost (500, connection, silence)        another replica or pool     at once                 the same; one rung lower only
 *                                                                                              if time is short
 *   nothing listens there                  another replica or pool,    at once, else when a    the same
 *                                          else the same               replica is ready again
 *   no progress (`fleet/liveness.ts`)      another replica or pool     at once                 the same
 *   no room (429, 503)                     another replica or pool,    at once;                one rung lower
 *                                          else the same               after the engine's time
 *   denied (401, 403, 404, no quota)       another pool                at once                 the same
 *   called off for an online ticket        anywhere                    at once                 the same
 *   the request's own fault                nowhere
 *
 * The client has seen nothing of the answer, so a failed attempt must not change it: a replica that breaks says nothing
 * about load, and its ticket keeps its whole conversation and its whole answer. An engine without room does say
 * something about load, and the time after which it has room is in its answer. A ticket that cannot wait for that time
 * ends at once, because its client can use the rest of its time better. A tenant with the contract `reject` never steps
 * down.
 *
 * Whatever a canary did to its ticket, the stable release repeats the attempt on the same terms.
 *
 * A transit whose bytes have gone through ends with its attempt: nobody keeps them.
 *
 * Bounds: two attempts; one more after a canary, one more in another pool, one more after each wait for room, of which
 * there are three at most, one more after each call-off, of which there are three at most too. Waiting ends at the ticket's
 * deadline and at its limit on waiting, as in the queue.
 *
 * Example: one engine, full, `Retry-After: 1`. The ticket waits 1 s at the head of its lane and tries again one rung
 * lower; refused again, it waits 2 s, then 4 s, then fails with the engine's own time to come back.
 */

/** Attempts of one ticket: the first, and one more elsewhere. The header says who gets more. */
export const ATTEMPTS_MAX = 2
/** Waits of one ticket for an engine without room; each doubles, so the third is four times what the engine said. */
const ROOM_WAITS_MAX = 3
/** Microseconds. An engine that says "at once" was full a moment ago: it needs a few of its steps. */
const ROOM_WAIT_US_MIN = 50_000
/** Microseconds to wait for an engine that does not say how long. */
const ROOM_WAIT_US_UNSAID = 1_000_000
/** Share of a wait that is added at most, at random: tickets that were refused together should not return together. */
const ROOM_WAIT_JITTER_RATIO = 0.2

/** True: the ticket waits for its next turn. False: the attempt's ending is the ticket's. */
export function tryAgain(platform: Platform, attempt: Attempt, ending: Ending, relay: Relay): boolean {
  const { admitted, ticket } = attempt
  if (relay.hasStarted || ticket.cancellation.isCancelled || !canRepeat(ticket.request)) return false
  const isCanaryOnly = ticket.attempts === ticket.canaryAttempts
  switch (ending.kind) {
    case 'finished':
      return false
    case 'cancelled':
      return attempt.isCalledOff && comeBack(platform, attempt)
    case 'lost':
      if (ending.isUnreachable === true && isUntaken(attempt)) ticket.roomWaits++
      if (isSpent(platform, attempt)) return false
      if (moveToShelter(platform, admitted)) return rejoin(platform, attempt, 'the release on trial failed')
      if (ending.isStalled === true && !hasElsewhere(platform, attempt)) return false
      admitted.plan = planInTime(platform, admitted)
      moveFrom(platform, attempt)
      return rejoin(platform, attempt, 'the attempt before was lost')
    case 'refused': {
      const { refusal } = ending
      if (refusal.blame === 'request' && !isCanaryOnly) return false
      if (!isSpent(platform, attempt) && moveToShelter(platform, admitted))
        return rejoin(platform, attempt, 'the release on trial refused')
      if (refusal.blame === 'request') return false
      return refusal.code === 'replica-denied' ? leavePool(platform, attempt) : findRoom(platform, attempt, refusal)
    }
  }
}

/** It gave way to an online ticket: on the same terms, and the time that it ran does not count as waiting. */
function comeBack(platform: Platform, attempt: Attempt): boolean {
  const { admitted, ticket, grantedAt } = attempt
  const { offer } = admitted
  const ranUs = platform.world.clock.now() - grantedAt
  admitted.offer = { ...offer, expiresAt: Math.min(ticket.request.deadlineAt, offer.expiresAt + ranUs) }
  return rejoin(platform, attempt, 'it gave way to an online request')
}

/** Whether the ticket has had all its attempts: those of this pool, and the one that another pool adds. */
function isSpent(platform: Platform, { admitted, ticket }: Attempt): boolean {
  const { attempts, canaryAttempts, roomWaits, callOffs } = ticket
  const allowed = ATTEMPTS_MAX + Math.min(1, canaryAttempts) + roomWaits + callOffs
  if (attempts < allowed) return false
  return attempts > allowed || otherPoolOf(platform, admitted) === undefined
}

/** No replica of this pool would answer otherwise: a person has to mend its key, its address or its quota. */
function leavePool(platform: Platform, attempt: Attempt): boolean {
  const { admitted } = attempt
  const poolId = otherPoolOf(platform, admitted)
  if (poolId === undefined || isSpent(platform, attempt)) return false
  admitted.sendTo(poolId)
  return rejoin(platform, attempt, 'the pool before was denied its engine')
}

/** Somewhere else at once, or here after the time that the engine needs; in both cases with less to do. */
function findRoom(platform: Platform, attempt: Attempt, refusal: Refusal): boolean {
  const { admitted, ticket } = attempt
  if (hasElsewhere(platform, attempt) && !isSpent(platform, attempt)) {
    admitted.plan = stepDown(platform, admitted)
    moveFrom(platform, attempt)
    return rejoin(platform, attempt, 'the replica before had no room')
  }
  const now = platform.world.clock.now()
  const waitUs = roomWaitUs(platform, attempt, refusal)
  if (admitted.offer.mayNotWait === true) return false
  if (ticket.roomWaits >= ROOM_WAITS_MAX || now + waitUs >= admitted.offer.expiresAt) return false
  ticket.roomWaits++
  admitted.plan = stepDown(platform, admitted)
  return rejoin(
    platform,
    attempt,
    `no replica had room, and waited ${Math.round(waitUs / 1_000)} ms for it`,
    now + waitUs,
  )
}

function roomWaitUs({ policies }: Platform, { ticket }: Attempt, { retryAfterUs }: Refusal): number {
  const saidUs = Math.max(ROOM_WAIT_US_MIN, retryAfterUs ?? ROOM_WAIT_US_UNSAID)
  return Math.ceil(saidUs * 2 ** ticket.roomWaits * (1 + ROOM_WAIT_JITTER_RATIO * policies.jitter()))
}

function rejoin(platform: Platform, attempt: Attempt, because: string, readyAt?: Instant): boolean {
  attempt.admitted.again = because
  return platform.turnstile.rejoin(attempt, readyAt) === undefined
}

/** The same plan while there is time for it, else one rung lower. Only the deadline counts: what runs late is still wanted. */
function planInTime(platform: Platform, admitted: Admitted): Plan {
  const { plan, poolId, ticket } = admitted
  const { request } = ticket
  const speed = platform.policies.poolsById.get(poolId)?.speed
  if (speed === undefined) return plan
  const { finishUs } = predict(plan, request.choiceCount, speed, 0)
  return platform.world.clock.now() + finishUs <= request.deadlineAt ? plan : stepDown(platform, admitted)
}

/** One rung lower, where the tenant allows that and a rung takes something from this request. */
function stepDown(platform: Platform, { plan, ticket }: Admitted): Plan {
  const { request } = ticket
  return request.tenant.contract === 'reject' ? plan : (lighterPlan(platform, request, plan) ?? plan)
}

/** From a pool that has no further replica for this ticket to another pool, where there is one. */
function moveFrom(platform: Platform, attempt: Attempt): void {
  const { admitted } = attempt
  const poolId = isLastOfPool(platform, attempt) ? otherPoolOf(platform, admitted) : undefined
  if (poolId !== undefined) admitted.sendTo(poolId)
}

/** Another replica of the pool, or another pool. */
const hasElsewhere = (platform: Platform, attempt: Attempt): boolean =>
  !isLastOfPool(platform, attempt) || otherPoolOf(platform, attempt.admitted) !== undefined

/**
 * No engine has seen the attempt, so it is none of those that a ticket has. Its replica is not ready any more: its ticket
 * waits for another one, or for this one's return.
 */
const isUntaken = ({ admitted, ticket }: Attempt): boolean =>
  ticket.roomWaits < ROOM_WAITS_MAX && admitted.offer.mayNotWait !== true

/** Whether the pool has no usable replica that has not failed this ticket: a pool gets two attempts, not three. */
function isLastOfPool({ policies }: Platform, { admitted, ticket, lease, nth }: Attempt): boolean {
  if (nth - ticket.callOffs >= ATTEMPTS_MAX) return true
  const known = policies.poolsById.get(admitted.poolId)
  const others = known?.pool.replicas.filter(({ id }) => id !== lease.replica.id && policies.health.isUsable(id))
  return others === undefined || others.length === 0
}

/** Another release takes the same plan, when the ticket's release is on trial or has no healthy replica. */
function moveToShelter(platform: Platform, admitted: Admitted): boolean {
  const { policies, world } = platform
  const { plan, ticket } = admitted
  const { request } = ticket
  if (request.errand !== undefined) return false
  const releaseId = shelterOf(policies, plan.releaseId, plan.model)
  const planned = releaseId === undefined ? undefined : planForRelease(platform, request, plan, releaseId)
  const pool = planned === undefined ? undefined : pickPool(policies, world.clock.now(), request, planned.releaseId)
  if (planned === undefined || pool === undefined) return false
  admitted.plan = planned
  admitted.sendTo(pool.pool.id)
  // The prediction was made for the other release, and is not held against this one.
  admitted.predicted = undefined
  return true
}
