import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import { otherPoolOf } from './fleet/lost-pool.ts'
import { pickPool } from './fleet/pick-pool.ts'
import { learnFromAttempt, measure } from './learning/learn.ts'
import { lighterPlan, planForRelease } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import { expect } from './rollout/judge-attempt.ts'
import { shelterOf } from './rollout/pick-release.ts'
import type { Ticket } from './ticket.ts'
import type { NoPlace, Turn } from './turnstile.ts'

/**
 * One turn on one replica, and whether there is a second. Whatever happens in between, the lease goes back, and what the
 * attempt taught is learned. A second try goes elsewhere, only while the client has seen nothing.
 */
type GrantedTurn = Extract<Turn, { kind: 'granted' }>

export async function generate(platform: Platform, ticket: Ticket, turn: GrantedTurn, relay: Relay): Promise<Ending> {
  const { lease } = turn
  const { clock, journal, backends } = platform.world
  const { plan, request, cancellation } = ticket
  assert(plan !== undefined, 'a ticket that runs was admitted with a plan')
  ticket.phase = 'running'
  ticket.lease = lease
  const grantedAt = clock.now()
  ticket.grantedAt = grantedAt
  ticket.attempts++
  const isCanary = platform.policies.rollouts.get(lease.replica.model)?.judged === lease.replica.releaseId
  if (isCanary) ticket.canaryAttempts++
  const { id: ticketId, attempts: attempt } = ticket
  const replicaId = lease.replica.id
  const atGrant = expect(platform, ticket, lease)
  ticket.replicaId = replicaId
  const waitedUs = grantedAt - (ticket.admittedAt ?? request.arrivedAt)
  const { because, placement } = turn
  journal.record({
    kind: 'granted',
    at: grantedAt,
    ticketId,
    releaseId: lease.replica.releaseId,
    replicaId,
    attempt,
    waitedUs,
    because,
    placement,
  })

  const forgetDeadline = request.isCutOff
    ? clock.at(request.deadlineAt, () => cancellation.cancel('deadline-passed'))
    : undefined
  const firstTokenBy = firstTokenByOf(ticket, grantedAt)
  const limit = firstTokenBy === undefined ? {} : { firstTokenBy }
  platform.policies.poolsById.get(lease.replica.poolId)?.outlook?.sent(plan.estimate.cost)
  let ending: Ending = { kind: 'lost', because: 'the backend threw' }
  try {
    ending = await backends.of(lease.replica).generate({ lease, request, plan, sink: relay, cancellation, ...limit })
  } finally {
    forgetDeadline?.()
    ticket.lease = undefined
    const atEnd = expect(platform, ticket, lease)
    platform.turnstile.giveBack(lease, measure(platform, ticket, ending))
    learnFromAttempt(platform, ticket, { lease, ending, atGrant, atEnd })
    journal.record({
      kind: 'attempt-ended',
      at: clock.now(),
      ticketId,
      releaseId: lease.replica.releaseId,
      replicaId,
      attempt,
      ending: ending.kind,
      because: becauseOf(ending),
    })
  }
  return ending
}

/** Of the time left, for the first token: the other half is a second attempt's. */
const FIRST_TOKEN_RATIO = 0.5
/** Below this there is no time for a second attempt, and half of it would only cut off a first one. */
const SPLIT_US_MIN = 2_000_000

/** Until when a stream may be silent: as long as it likes when there is no attempt left after this one. */
function firstTokenByOf({ request, attempts }: Ticket, now: Instant): Instant | undefined {
  const leftUs = request.deadlineAt - now
  if (!request.isStreamed || attempts >= ATTEMPTS_MAX || leftUs < SPLIT_US_MIN) return undefined
  return now + Math.round(leftUs * FIRST_TOKEN_RATIO)
}

/** How often one ticket may be tried: the first time, once more elsewhere, and once more where there is another pool. */
export const ATTEMPTS_MAX = 2

/**
 * A second try is allowed only while the client has seen nothing, and only when another replica might do better. What a
 * canary fails or refuses is tried on stable, whoever it says is to blame, and costs none of stable's tries; where there is
 * another pool, in another region perhaps, there is one try more for it.
 */
export function mayTryAgain(platform: Platform, ticket: Ticket, ending: Ending, relay: Relay): boolean {
  const { attempts, canaryAttempts, cancellation } = ticket
  if (relay.hasStarted || cancellation.isCancelled) return false
  const elsewhere = attempts < ATTEMPTS_MAX || otherPoolOf(platform, ticket) === undefined ? 0 : 1
  if (attempts >= ATTEMPTS_MAX + Math.min(1, canaryAttempts) + elsewhere) return false
  if (ending.kind === 'lost') return true
  return ending.kind === 'refused' && (ending.refusal.blame !== 'request' || attempts === canaryAttempts)
}

/**
 * Once more: on the stable release where a canary failed, else elsewhere, with less context where the tenant allows it;
 * at the head of its lane.
 */
export function tryAgain(platform: Platform, ticket: Ticket): NoPlace | undefined {
  if (moveToShelter(platform, ticket)) return platform.turnstile.rejoin(ticket)
  const { request, plan } = ticket
  const lighter =
    plan === undefined || request.tenant.contract === 'reject' ? undefined : lighterPlan(platform, request, plan)
  if (lighter !== undefined) ticket.plan = lighter
  const poolId = isLeftAlone(platform, ticket) ? otherPoolOf(platform, ticket) : undefined
  if (poolId !== undefined) {
    ticket.poolId = poolId
    if (ticket.offer !== undefined) ticket.offer = { ...ticket.offer, poolId }
  }
  return platform.turnstile.rejoin(ticket)
}

/** The release that it had is being tried, or has no healthy replica: the same plan for another one. */
function moveToShelter(platform: Platform, ticket: Ticket): boolean {
  const { policies, world } = platform
  const { request, plan, offer } = ticket
  if (plan === undefined || offer === undefined || request.errand !== undefined) return false
  const releaseId = shelterOf(policies, plan.releaseId, plan.model)
  const planned = releaseId === undefined ? undefined : planForRelease(platform, request, plan, releaseId)
  const pool = planned === undefined ? undefined : pickPool(policies, world.clock.now(), request, planned.releaseId)
  if (planned === undefined || pool === undefined) return false
  ticket.plan = planned
  ticket.poolId = pool.pool.id
  ticket.offer = { ...offer, poolId: pool.pool.id, estimate: planned.estimate }
  // What was predicted was predicted for the other release: it is not held against this one.
  ticket.predicted = undefined
  return true
}

/** Nobody in its pool is left who has not failed it: a second replica of a pool has its chance, a third has not. */
function isLeftAlone({ policies }: Platform, { poolId, attempts, replicaId }: Ticket): boolean {
  if (attempts >= ATTEMPTS_MAX) return true
  const known = poolId === undefined ? undefined : policies.poolsById.get(poolId)
  const others = known?.pool.replicas.filter(({ id }) => id !== replicaId && policies.health.isUsable(id))
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
