import type { Refusal } from '../domain/outcome.ts'
import { makePlan } from '../policy/planning/make-plan.ts'
import type { Platform } from './platform.ts'
import type { Ticket } from './ticket.ts'

/**
 * May it come in? Plans the request, finds its pool, and joins the queue, or says why not. A refused ticket has taken
 * nothing.
 */
export type Verdict = { readonly kind: 'admitted' } | { readonly kind: 'rejected'; readonly refusal: Refusal }

export function admit(platform: Platform, ticket: Ticket): Verdict {
  const { request } = ticket
  const { clock, journal } = platform.world
  const refuse = (refusal: Refusal): Verdict => ({ kind: 'rejected', refusal })
  if (platform.isDraining) return refuse(SHUTTING_DOWN)
  const model = platform.modelOf(request.model)
  const pool = platform.poolOf(request.model)
  if (model === undefined || pool === undefined) return refuse(noPool(request.model))
  const planned = makePlan(request, model)
  if (planned.kind === 'refused') return refuse(planned.refusal)

  const now = clock.now()
  ticket.plan = planned.plan
  ticket.poolId = pool.id
  ticket.admittedAt = now
  const waitUsMax = Math.min(platform.queueUsMax, request.tenant.queueUsMax)
  const expiresAt = Math.min(request.deadlineAt, now + waitUsMax)
  const refusal = platform.turnstile.join(ticket, { ticketId: ticket.id, poolId: pool.id, expiresAt })
  if (refusal !== undefined) {
    ticket.admittedAt = undefined
    return refuse(refusal)
  }
  ticket.phase = 'waiting'
  journal.record({
    kind: 'admitted',
    at: now,
    ticketId: ticket.id,
    tenantId: request.tenant.id,
    poolId: pool.id,
    rung: planned.plan.rung.name,
    because: 'the queue has room',
  })
  return { kind: 'admitted' }
}

const SHUTTING_DOWN: Refusal = {
  code: 'shutting-down',
  because: 'The server is shutting down.',
  blame: 'platform',
  retryAfterUs: 1_000_000,
}

function noPool(model: string): Refusal {
  const because = `No engine serves the model '${model}'.`
  return { code: 'no-replica', because, blame: 'platform', retryAfterUs: 5_000_000 }
}
