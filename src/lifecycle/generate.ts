import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import { lighterPlan } from './admit.ts'
import { learnFromAttempt, measure } from './learn.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
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
  const { id: ticketId, attempts: attempt } = ticket
  const replicaId = lease.replica.id
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
  let ending: Ending = { kind: 'lost', because: 'the backend threw' }
  try {
    ending = await backends.of(lease.replica).generate({ lease, request, plan, sink: relay, cancellation, ...limit })
  } finally {
    forgetDeadline?.()
    ticket.lease = undefined
    platform.turnstile.giveBack(lease, measure(platform, ticket, ending))
    learnFromAttempt(platform, ticket, lease, ending)
    journal.record({
      kind: 'attempt-ended',
      at: clock.now(),
      ticketId,
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

/** How often one ticket may be tried: the first time, and once more elsewhere. */
export const ATTEMPTS_MAX = 2

/** A second try is allowed only while the client has seen nothing, and only when another replica might do better. */
export function mayTryAgain(ticket: Ticket, ending: Ending, relay: Relay): boolean {
  if (ticket.attempts >= ATTEMPTS_MAX || relay.hasStarted || ticket.cancellation.isCancelled) return false
  return ending.kind === 'lost' || (ending.kind === 'refused' && ending.refusal.blame !== 'request')
}

/** Once more: elsewhere, with less context where the tenant allows it, at the head of its lane. */
export function tryAgain(platform: Platform, ticket: Ticket): NoPlace | undefined {
  const { request, plan } = ticket
  const lighter =
    plan === undefined || request.tenant.contract === 'reject' ? undefined : lighterPlan(platform, request, plan)
  if (lighter !== undefined) ticket.plan = lighter
  return platform.turnstile.rejoin(ticket)
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
