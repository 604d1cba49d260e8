import { ArchiveUnavailable } from '../domain/archive.ts'
import { JobsUnavailable } from '../domain/job.ts'
import type { WorkBudgets } from '../lifecycle/retrieval-ports.ts'
import type { QueuedResponse } from '../wire/dialect.ts'
import { invalidRequest } from '../wire/openai-error.ts'
import { archiveAway } from './archive-away.ts'
import type { Caller } from './authenticate.ts'
import type { BackgroundResponses } from './background-responses.ts'
import { refuseCall } from './check-call.ts'
import { fixedRetryUs } from './error-table.ts'
import type { Exchange } from './exchange.ts'
import { jobCallerOf } from './job-caller.ts'
import { rateLimitHeaders } from './rate-limit-headers.ts'
import { jobsAway } from './routes/corpora-answer.ts'
import { blockFault, type FoundInBody } from './screen-body.ts'

/** Answers a request that nobody waits for: with the response as it is queued, or why it is not. */
export interface BackgroundCall {
  readonly caller: Caller
  readonly draft: QueuedResponse
  /** The body as it was screened: so it rests, and it is screened again when it runs. */
  readonly bytes: Buffer
  readonly found: FoundInBody | undefined
}

/**
 * Queueing takes one request of the caller's budgets, as creating a batch does: without that a caller whose budgets are
 * spent could fill the store. What the request itself takes is taken when it runs.
 */
export interface BackgroundDeps {
  readonly background: BackgroundResponses
  readonly budgets: WorkBudgets
}

export async function putInBackground(
  { background, budgets }: BackgroundDeps,
  exchange: Exchange,
  { caller, draft, bytes, found }: BackgroundCall,
): Promise<void> {
  if (caller.sentOn !== undefined) {
    exchange.sendFault(invalidRequest("Unsupported 'background': ask the region itself.", 'background'))
    return
  }
  const blocked = found === undefined ? undefined : blockFault(found.found)
  if (blocked !== undefined) {
    exchange.sendFault(blocked)
    return
  }
  const hasBand = (caller.bands ?? caller.tenant.bands).includes('offline')
  const asked = hasBand ? caller : { ...caller, denial: () => 'bands' as const }
  if (refuseCall(exchange, asked, { route: 'responses', band: 'offline' })) return
  const held = budgets.reserve(caller, 0)
  const rateLimits = (): string[] => rateLimitHeaders(budgets.view(caller))
  if ('code' in held) {
    exchange.sendRefusal(held, rateLimits())
    return
  }
  try {
    const start = { tenant: caller.tenant, caller: JSON.stringify(jobCallerOf(exchange)), queued: draft, bytes }
    const told = await background.start(start)
    if (told === 'queued') held.settle()
    else held.refund()
    if (told === 'too-many-jobs') refuseMore(exchange, background.openMax)
    else if (told === 'too-large') exchange.sendFault(invalidRequest(TOO_LARGE, 'background', 'request-too-large'))
    else exchange.sendJson(200, draft.document, ['x-spillway-stored', 'true', ...rateLimits()])
  } catch (error) {
    held.refund()
    if (error instanceof ArchiveUnavailable) exchange.sendRefusal(archiveAway(error))
    else if (error instanceof JobsUnavailable) exchange.sendRefusal(jobsAway(error))
    else throw error
  }
}

const TOO_LARGE = 'A request that runs in the background may have 1 MiB. Send less, or wait for the answer.'

const refuseMore = (exchange: Exchange, openMax: number): void =>
  exchange.sendRefusal({
    code: 'too-many-batches',
    because: `you have ${openMax} batches and background responses that have not ended`,
    blame: 'tenant',
    retryAfterUs: fixedRetryUs('too-many-batches'),
  })
