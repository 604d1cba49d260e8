import { US_PER_MS } from '../base/clock.ts'
import type { Settled } from '../domain/entry.ts'
import type { Payer } from '../domain/ledger.ts'
import { promptTokensOf } from '../domain/request.ts'
import { auditBegun } from './audit-request.ts'
import type { Platform } from './platform.ts'
import { soldOf } from './spending.ts'
import type { Attempt, Ticket } from './ticket.ts'

/**
 * A ticket in the books: opened at its first turn, settled at its end. A ticket that was refused, and one that lost its
 * place before its first turn, is in no book: it used nothing and pays nothing.
 *
 * What is sold: what the answer that the client got used, once, however many attempts it took; of an answer that was
 * known already only its prompt, as cached. An answer that we lost is not sold (`failed`); one that the client called
 * off is, as far as it came. The platform's own errands are counted and sold to nobody.
 */
export function openBooks(platform: Platform, { ticket, lease }: Attempt): void {
  if (ticket.attempts > 1) return
  auditBegun(platform, ticket)
  const { world } = platform
  const { request } = ticket
  world.books.opened({
    ticketId: ticket.id,
    ...payerOf(ticket),
    model: request.model,
    releaseId: lease.replica.releaseId,
    inputTokens: promptTokensOf(request),
    price: ticket.price,
    isSold: request.errand === undefined,
  })
}

export function closeBooks({ world }: Platform, ticket: Ticket, { at, releaseId, outcome, usage }: Settled): void {
  if (ticket.attempts === 0 && ticket.cached === undefined) return
  const { promptTokens, cachedTokens, outputTokens } = usage
  world.books.settled({
    ticketId: ticket.id,
    ...payerOf(ticket),
    atMs: Math.floor(at / US_PER_MS),
    model: ticket.request.model,
    releaseId: releaseId ?? '',
    outcome,
    inputTokens: Math.round(promptTokens),
    cachedTokens: Math.round(cachedTokens),
    outputTokens: Math.round(outputTokens),
    price: ticket.price,
    priced: soldOf(ticket, outcome, usage),
    isCostOpen: ticket.attempts > 0 && world.books.isCosting,
  })
}

function payerOf({ request }: Ticket): Payer {
  const { tenant, key, endUser = '' } = request
  return { orgId: tenant.orgId, tenantId: tenant.id, keyId: key.id, endUser }
}
