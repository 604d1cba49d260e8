import type { Instant } from '../base/clock.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { RetrievalWish } from '../domain/request.ts'
import { passageTokens } from '../policy/planning/passage-room.ts'
import { planWith } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Retrieved } from './retrieval-ports.ts'
import { screenRetrieved } from './screen-retrieved.ts'
import { judgePassages } from './screening/judge-passages.ts'
import { openGate } from './screening/screen-request.ts'
import type { Admitted, Ticket } from './ticket.ts'

/**
 * Passages for a ticket that stands in its lane: looked for while the ticket waits, within the plan's room and a budget
 * that never makes it late. Then the plan is made again with what was found, and the ticket may have its turn. However
 * retrieval ends, the request goes on: an answer without passages is worth more than none.
 *
 * The budget is the predicted wait for a turn plus the time that the promise of the first token leaves over, and never
 * more than the configured budget.
 */
export async function retrieve(platform: Platform, admitted: Admitted, wish: RetrievalWish): Promise<void> {
  const { clock, journal } = platform.world
  const { plan, ticket } = admitted
  const { request } = ticket
  const startedAt = clock.now()
  const budgetUs = budgetOf(platform, admitted, startedAt)
  const found = await ask(platform, admitted, wish, budgetUs)
  const { screening } = request
  const retrieved =
    screening === undefined ? found : await judgePassages(platform, ticket, await screenRetrieved(screening, found))
  const planned = planWith(platform, request, plan, retrieved.passages)
  admitted.retrieved = { ...retrieved, passages: planned.passages ?? [] }
  admitted.plan = planned
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
  openGate(platform, admitted)
}

/**
 * Naming a corpus that the tenant does not have is the client's mistake, and is told before anything is spent. When the
 * lookup gives no answer within half of the retrieval budget, the request goes on without knowing its corpus.
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

/** Microseconds. A look into the retrieval cache takes less, so the cache is always asked. */
const BUDGET_US_MIN = 5_000

function budgetOf(platform: Platform, { predicted, ticket }: Admitted, now: Instant): number {
  const { request } = ticket
  const waitUs = predicted?.waitUs ?? 0
  const promisedAt = Math.min(request.arrivedAt + request.slo.ttftUs, request.deadlineAt)
  const slackUs = promisedAt - now - (predicted?.ttftUs ?? 0)
  return Math.min(platform.retrievalUsMax - ticket.lookedUpUs, Math.max(BUDGET_US_MIN, waitUs + slackUs))
}

/** The port promises not to throw; a throw is our fault, counted in the journal, and the request goes on. */
async function ask(
  platform: Platform,
  { plan, ticket }: Admitted,
  wish: RetrievalWish,
  budgetUs: number,
): Promise<Retrieved> {
  const { clock, journal, retriever } = platform.world
  const { passagesMax, tokensMax } = plan.passageRoom ?? { passagesMax: 0, tokensMax: 0 }
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
