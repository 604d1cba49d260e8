import { ArchiveUnavailable } from '../../domain/archive.ts'
import { CorpusError } from '../../domain/corpus.ts'
import { JobsUnavailable } from '../../domain/job.ts'
import type { CallRoute } from '../../domain/key-terms.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Tenant } from '../../domain/tenant.ts'
import type { Corpora, PageAsk, WorkBudgets, WorkHold } from '../../lifecycle/retrieval-ports.ts'
import { archiveAway } from '../archive-away.ts'
import type { Caller, KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import type { CollectDeps } from '../collect-screened.ts'
import { type CorpusCode, fixedRetryUs, type JobCode, type ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'

/** What the routes of vector stores, of files and of stored answers share: their parts, budgets, answers and paging. */
export interface StoreDeps {
  readonly keys: KeyDirectory
  readonly budgets: WorkBudgets
  readonly bodyBytesMax: number
  /** For bodies that have text which is not kept. */
  readonly rules: CollectDeps['rules']
}

export interface CorporaDeps extends StoreDeps {
  readonly corpora: Corpora
}

/** A request of a known caller that its budgets allow. */
export interface CorpusCall {
  readonly exchange: Exchange
  readonly tenantId: string
  readonly tenant: Tenant
  readonly caller: Caller
  /** Holds this many tokens for the call, instead of what was held before; throws if the budgets do not allow it. */
  readonly hold: (tokens: number) => void
  /** Headers with what is left of the caller's budgets. */
  readonly rateLimits: () => string[]
}

/** Bytes of text that count as a token: about what English has. Exact counts would cost more than they are worth. */
const BYTES_PER_TOKEN = 4

export const tokensOfBytes = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)

/** Makes the routes of one family that store no text of their body: method, path, and what answers a call of it. */
export function callRoutesOf(deps: StoreDeps, route: CallRoute) {
  return (
    method: Route['method'],
    path: string,
    handle: (call: CorpusCall, rest: string) => Promise<unknown>,
  ): Route => ({
    method,
    path,
    handle: (exchange, rest) => answerCall(deps, exchange, { route, hasText: false }, (call) => handle(call, rest)),
  })
}

/**
 * Serves one call: who is it, do its budgets allow it, what is the answer? The answer is sent in OpenAI's shape, and so
 * are faults and expected refusals; undefined means answered already. A call that used the store is charged, also if
 * the answer is that something is not there; a call that was refused, or could not be read, costs nothing.
 *
 * `hasText`: the body is text to be stored. Its declared size is held before it is read.
 */
export async function answerCall(
  deps: StoreDeps,
  exchange: Exchange,
  { route, hasText }: { readonly route: CallRoute; readonly hasText: boolean },
  work: (call: CorpusCall) => Promise<unknown>,
): Promise<void> {
  const caller = callerFor(exchange, deps.keys, { route })
  if (caller === undefined) return
  const declaredBytes = Number(exchange.req.headers['content-length'] ?? 0)
  const held = deps.budgets.reserve(caller, hasText ? tokensOfBytes(declaredBytes) : 0)
  if ('code' in held) {
    exchange.sendRefusal(held, headersFor(deps, caller))
    return
  }
  const rateLimits = (): string[] => headersFor(deps, caller)
  try {
    const { tenant } = caller
    const value = await work({
      exchange,
      tenantId: tenant.id,
      tenant,
      caller,
      rateLimits,
      hold: (tokens) => resize(held, tokens),
    })
    held.settle()
    if (value !== undefined) exchange.sendJson(200, JSON.stringify(value), rateLimits())
  } catch (error) {
    tell(deps, exchange, caller, held, error)
  }
}

const headersFor = ({ budgets }: StoreDeps, caller: Pick<Caller, 'tenant' | 'key'>): string[] =>
  rateLimitHeaders(budgets.view(caller))

function resize(held: WorkHold, tokens: number): void {
  const refusal = held.resize(tokens)
  if (refusal !== undefined) throw new OverBudget(refusal)
}

function tell(deps: StoreDeps, exchange: Exchange, caller: Caller, held: WorkHold, error: unknown): void {
  const isAnswered = error instanceof CorpusError && error.code !== 'unavailable' && error.code !== 'lane-full'
  if (isAnswered || (error instanceof BodyFault && error.isCharged)) held.settle()
  else held.refund()
  const headers = headersFor(deps, caller)
  if (error instanceof BodyFault) exchange.sendFault(error.fault, headers)
  else if (error instanceof OverBudget) exchange.sendRefusal(error.refusal, headers)
  else if (error instanceof CorpusError) exchange.sendRefusal(refusalOf(error), headers)
  else if (error instanceof JobsUnavailable) exchange.sendRefusal(jobsAway(error), headers)
  else if (error instanceof ArchiveUnavailable) exchange.sendRefusal(archiveAway(error), headers)
  else throw error
}

function refusalOf({ code, message, retryAfterUs }: CorpusError): ToldRefusal<CorpusCode> {
  if (code === 'lane-full') return { code, because: message, blame: 'tenant', retryAfterUs }
  if (code !== 'unavailable') return { code, because: message, blame: 'request', retryAfterUs: undefined }
  const told = 'retrieval-unavailable'
  return { code: told, because: message, blame: 'platform', retryAfterUs: fixedRetryUs(told) }
}

export const jobsAway = ({ message, retryAfterUs }: JobsUnavailable): ToldRefusal<JobCode> => ({
  code: 'jobs-unavailable',
  because: message,
  blame: 'platform',
  retryAfterUs: retryAfterUs ?? fixedRetryUs('jobs-unavailable'),
})

export class BodyFault extends Error {
  readonly fault: Parameters<Exchange['sendFault']>[0]
  /** The store was asked, and has nothing of that name. */
  readonly isCharged: boolean

  constructor(fault: Parameters<Exchange['sendFault']>[0], isCharged = false) {
    super(fault.message)
    this.fault = fault
    this.isCharged = isCharged
  }
}

/** What the call proved to need is more than the caller may spend now. */
class OverBudget extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.because)
    this.refusal = refusal
  }
}

/** OpenAI's paging: `limit`, `order`, `after`. */
export function pageAskOf(url: string | undefined): PageAsk & { readonly words: URLSearchParams } {
  const words = new URL(url ?? '/', 'http://localhost').searchParams
  const limit = Math.trunc(Number(words.get('limit') ?? 20))
  return {
    limit: Number.isFinite(limit) ? Math.min(100, Math.max(1, limit)) : 20,
    order: words.get('order') === 'asc' ? 'asc' : 'desc',
    after: words.get('after') ?? undefined,
    words,
  }
}
