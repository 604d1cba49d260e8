import { assert } from '../base/assert.ts'
import type { Lease } from '../domain/fleet.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import type { Ticket } from './ticket.ts'

/** One turn on one replica. Whatever happens in between, the lease goes back. */
export async function generate(platform: Platform, ticket: Ticket, lease: Lease, relay: Relay): Promise<Ending> {
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
  journal.record({ kind: 'granted', at: grantedAt, ticketId, replicaId, attempt, waitedUs })

  let ending: Ending = { kind: 'lost', because: 'the backend threw' }
  try {
    ending = await backends.of(lease.replica).generate({ lease, request, plan, sink: relay, cancellation })
  } finally {
    ticket.lease = undefined
    platform.turnstile.giveBack(lease)
    const because = becauseOf(ending)
    journal.record({
      kind: 'attempt-ended',
      at: clock.now(),
      ticketId,
      replicaId,
      attempt,
      ending: ending.kind,
      because,
    })
  }
  return ending
}

/** How often one ticket may be tried: the first time, and once more elsewhere. */
export const ATTEMPTS_MAX = 2

/** A second try is allowed only while the client has seen nothing, and only when another replica might do better. */
export function mayTryAgain(ticket: Ticket, ending: Ending, relay: Relay): boolean {
  if (ticket.attempts >= ATTEMPTS_MAX || relay.hasStarted || ticket.cancellation.isCancelled) return false
  return ending.kind === 'lost' || (ending.kind === 'refused' && ending.refusal.blame !== 'request')
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
