import type { Instant } from '../base/clock.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { RetrievalWish } from '../domain/request.ts'
import { passageTokens } from '../policy/planning/passage-room.ts'
import { planWith } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Retrieved } from './retrieval-ports.ts'
import type { Ticket } from './ticket.ts'

/**
 * Passages for a ticket that stands in its lane: looked for while it waits, within the plan's room and a budget that
 * never makes it late. Then the plan is made again with what was found, and the ticket may have its turn. However that
 * ends, the request goes on: an answer without passages is worth more than none.
 *
 * The wait for a turn is free; beyond it only time that the promise of the first token leaves over is used, and never
 * more than the configured budget.
 */
export async function retrieve(platform: Platform, ticket: Ticket, wish: RetrievalWish): Promise<void> {
  const { clock, journal } = platform.world
  const { plan, request } = ticket
  if (plan === undefined) return
  const startedAt = clock.now()
  const budgetUs = budgetOf(platform, ticket, startedAt)
  const retrieved = await ask(platform, ticket, wish, budgetUs)
  const planned = planWith(platform, request, plan, retrieved.passages)
  ticket.retrieved = { ...retrieved, passages: planned.passages ?? [] }
  ticket.plan = planned
  journal.record({
    kind: 'retrieval-ended',
    at: clock.now(),
    ticketId: ticket.id,
    tenantId: request.tenant.id,
    outcome: retrieved.outcome,
    passageCount: planned.passages?.length ?? 0,
    passageTokens: passageTokens(undefined, planned.passages ?? []),
    tookUs: clock.now() - startedAt,
    budgetUs,
    because: retrieved.because,
  })
  platform.turnstile.ready(ticket, planned.estimate)
}

/**
 * A corpus that its tenant does not have is the client's mistake, and told before anything is spent. When that cannot be
 * found out in half of the budget the request goes on: then it is retrieval that will say so.
 */
export async function refuseUnknownCorpus(
  platform: Platform,
  ticket: Ticket,
  { corpus }: RetrievalWish,
): Promise<Refusal | undefined> {
  const { clock, journal, retriever } = platform.world
  const startedAt = clock.now()
  const { tenant } = ticket.request
  const budgetUs = Math.floor(platform.retrievalUsMax / 2)
  try {
    const look = await retriever.lookUp({ tenantId: tenant.id, corpus, budgetUs, cancellation: ticket.cancellation })
    if (look.kind === 'none') return noSuchCorpus(corpus)
    if (look.kind === 'found') ticket.corpus = look.corpus
  } catch (error) {
    const because = String(error)
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'retrieve', because, ticketId: ticket.id })
  }
  ticket.lookedUpUs = clock.now() - startedAt
  return undefined
}

function noSuchCorpus(corpus: string): Refusal {
  const because = `You have no corpus '${corpus.slice(0, 100)}'.`
  return {
    code: 'no-such-corpus',
    because,
    blame: 'request',
    retryAfterUs: undefined,
    param: 'spillway.retrieval.corpus',
  }
}

/** Looking into a cache takes less than this, so that is always done. */
const BUDGET_US_MIN = 5_000

function budgetOf(platform: Platform, ticket: Ticket, now: Instant): number {
  const { predicted, request } = ticket
  const waitUs = predicted?.waitUs ?? 0
  const promisedAt = Math.min(request.arrivedAt + request.slo.ttftUs, request.deadlineAt)
  const slackUs = promisedAt - now - (predicted?.ttftUs ?? 0)
  return Math.min(platform.retrievalUsMax - ticket.lookedUpUs, Math.max(BUDGET_US_MIN, waitUs + slackUs))
}

/** The port promises not to throw; if it does that is our fault, and not the request's. */
async function ask(platform: Platform, ticket: Ticket, wish: RetrievalWish, budgetUs: number): Promise<Retrieved> {
  const { clock, journal, retriever } = platform.world
  const { passagesMax, tokensMax } = ticket.plan?.passageRoom ?? { passagesMax: 0, tokensMax: 0 }
  try {
    return await retriever.retrieve({
      tenantId: ticket.request.tenant.id,
      corpus: wish.corpus,
      query: wish.query,
      passagesMax,
      tokensMax,
      budgetUs,
      cancellation: ticket.cancellation,
    })
  } catch (error) {
    const because = String(error)
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'retrieve', because, ticketId: ticket.id })
    return { outcome: 'failed', because: 'retrieval broke', passages: [] }
  }
}
