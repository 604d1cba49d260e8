import type { Instant } from '../base/clock.ts'
import type { NoPlace } from '../domain/no-place.ts'
import { otherPoolOf } from './fleet/lost-pool.ts'
import { pickPool } from './fleet/pick-pool.ts'
import { learnFromAttempt, measure } from './learning/learn.ts'
import { lighterPlan, planForRelease } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import { expect } from './rollout/judge-attempt.ts'
import { shelterOf } from './rollout/pick-release.ts'
import { type Admitted, Attempt } from './ticket.ts'
import type { Turn } from './turnstile.ts'

/**
 * One turn on one replica, and whether there is another. However the attempt ends, its lease goes back and the meters
 * learn from it. A further try goes to another replica, and only while the client has seen nothing of the answer.
 */
type GrantedTurn = Extract<Turn, { kind: 'granted' }>

/** From here the attempt holds the lease: it goes back in `generate`, or in `Platform.release` when something throws. */
export function beginAttempt(platform: Platform, admitted: Admitted, turn: GrantedTurn): Attempt {
  const { clock, journal } = platform.world
  const { ticket } = admitted
  const { lease, because, placement } = turn
  const { replica } = lease
  const attempt = new Attempt(admitted, { lease, placement, grantedAt: clock.now(), nth: ++ticket.attempts })
  ticket.attempt = attempt
  ticket.phase = 'running'
  if (platform.policies.rollouts.get(replica.model)?.judged === replica.releaseId) ticket.canaryAttempts++
  journal.record({
    kind: 'granted',
    at: attempt.grantedAt,
    ticketId: ticket.id,
    releaseId: replica.releaseId,
    replicaId: replica.id,
    attempt: attempt.nth,
    waitedUs: attempt.grantedAt - admitted.at,
    because,
    placement,
  })
  return attempt
}

export async function generate(platform: Platform, attempt: Attempt, relay: Relay): Promise<Ending> {
  const { clock, journal, backends } = platform.world
  const { ticket, lease, plan } = attempt
  const { request, cancellation } = ticket
  const { replica } = lease
  const atGrant = expect(platform, attempt)
  const forgetDeadline = request.isCutOff
    ? clock.at(request.deadlineAt, () => cancellation.cancel('deadline-passed'))
    : undefined
  const firstTokenBy = firstTokenByOf(attempt)
  const limit = firstTokenBy === undefined ? {} : { firstTokenBy }
  platform.policies.poolsById.get(replica.poolId)?.outlook?.sent(plan.estimate.cost)
  let ending: Ending = { kind: 'lost', because: 'the backend threw' }
  try {
    ending = await backends.of(replica).generate({ lease, request, plan, sink: relay, cancellation, ...limit })
  } finally {
    forgetDeadline?.()
    attempt.isOver = true
    const atEnd = expect(platform, attempt)
    platform.turnstile.giveBack(lease, measure(platform, attempt, ending))
    learnFromAttempt(platform, attempt, { ending, atGrant, atEnd })
    journal.record({
      kind: 'attempt-ended',
      at: clock.now(),
      ticketId: ticket.id,
      releaseId: replica.releaseId,
      replicaId: replica.id,
      attempt: attempt.nth,
      ending: ending.kind,
      because: becauseOf(ending),
      unpaidCost: attempt.unpaidCost,
    })
  }
  return ending
}

/** Share of the time left that the first token may take: the other half is for a second attempt. */
const FIRST_TOKEN_RATIO = 0.5
/** Microseconds. With less time left than this a second attempt has no chance, and half of it would cut off the first. */
const SPLIT_US_MIN = 2_000_000

/** The instant until which a stream may stay silent; undefined (no limit) when no attempt is left after this one. */
function firstTokenByOf({ ticket, grantedAt, nth }: Attempt): Instant | undefined {
  const { request } = ticket
  const leftUs = request.deadlineAt - grantedAt
  if (!request.isStreamed || nth >= ATTEMPTS_MAX || leftUs < SPLIT_US_MIN) return undefined
  return grantedAt + Math.round(leftUs * FIRST_TOKEN_RATIO)
}

/** Attempts of one ticket: the first, and one more elsewhere. `mayTryAgain` says who gets more. */
export const ATTEMPTS_MAX = 2

/**
 * A further try is allowed only while the client has seen nothing, and only when another replica might do better. An
 * attempt that a canary failed or refused is repeated on the stable release, whoever the canary blamed, and does not
 * count against `ATTEMPTS_MAX`. A ticket that another pool could take (perhaps another region's) has one try more.
 */
export function mayTryAgain(platform: Platform, attempt: Attempt, ending: Ending, relay: Relay): boolean {
  const { attempts, canaryAttempts, cancellation } = attempt.ticket
  if (relay.hasStarted || cancellation.isCancelled) return false
  const elsewhere = attempts < ATTEMPTS_MAX || otherPoolOf(platform, attempt.admitted) === undefined ? 0 : 1
  if (attempts >= ATTEMPTS_MAX + Math.min(1, canaryAttempts) + elsewhere) return false
  if (ending.kind === 'lost') return true
  return ending.kind === 'refused' && (ending.refusal.blame !== 'request' || attempts === canaryAttempts)
}

/**
 * The ticket joins the head of its lane once more: for the stable release where a canary failed, else for another
 * replica or pool, with less context where the tenant allows that.
 */
export function tryAgain(platform: Platform, attempt: Attempt): NoPlace | undefined {
  const { admitted, ticket } = attempt
  if (moveToShelter(platform, admitted)) return platform.turnstile.rejoin(attempt)
  const { request } = ticket
  const lighter = request.tenant.contract === 'reject' ? undefined : lighterPlan(platform, request, admitted.plan)
  if (lighter !== undefined) admitted.plan = lighter
  const poolId = isLastOfPool(platform, attempt) ? otherPoolOf(platform, admitted) : undefined
  if (poolId !== undefined) admitted.sendTo(poolId)
  return platform.turnstile.rejoin(attempt)
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

/** Whether the pool has no usable replica that has not failed this ticket: a pool gets two attempts, not three. */
function isLastOfPool({ policies }: Platform, { admitted, lease, nth }: Attempt): boolean {
  if (nth >= ATTEMPTS_MAX) return true
  const known = policies.poolsById.get(admitted.poolId)
  const others = known?.pool.replicas.filter(({ id }) => id !== lease.replica.id && policies.health.isUsable(id))
  return others === undefined || others.length === 0
}

function becauseOf(ending: Ending): string {
  switch (ending.kind) {
    case 'finished':
    case 'cancelled':
      return ending.kind
    case 'refused':
      return ending.refusal.because
    case 'lost':
      return ending.because
  }
}
