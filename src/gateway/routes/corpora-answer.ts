import { CorpusError } from '../../domain/corpus.ts'
import type { Corpora, PageAsk } from '../../lifecycle/retrieval-ports.ts'
import type { KeyDirectory } from '../authenticate.ts'
import { type CorpusCode, fixedRetryUs, type ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'

/** What the routes of vector stores and of files share: their parts, answers and paging. */
export interface CorporaDeps {
  readonly corpora: Corpora
  readonly keys: KeyDirectory
  readonly bodyBytesMax: number
}

/**
 * Sends the result as the answer, or a fault or an expected refusal in OpenAI's shape; undefined means answered
 * already.
 */
export async function respond(exchange: Exchange, work: () => Promise<unknown>): Promise<void> {
  try {
    const value = await work()
    if (value !== undefined) exchange.sendJson(200, JSON.stringify(value))
  } catch (error) {
    if (error instanceof BodyFault) exchange.sendFault(error.fault)
    else if (error instanceof CorpusError) exchange.sendRefusal(refusalOf(error))
    else throw error
  }
}

function refusalOf({ code, message }: CorpusError): ToldRefusal<CorpusCode> {
  if (code !== 'unavailable') return { code, because: message, blame: 'request', retryAfterUs: undefined }
  const told = 'retrieval-unavailable'
  return { code: told, because: message, blame: 'platform', retryAfterUs: fixedRetryUs(told) }
}

export class BodyFault extends Error {
  readonly fault: Parameters<Exchange['sendFault']>[0]

  constructor(fault: Parameters<Exchange['sendFault']>[0]) {
    super(fault.message)
    this.fault = fault
  }
}

/** OpenAI's paging: `limit`, `order`, `after`. */
export function pageOf(url: string | undefined): PageAsk & { readonly words: URLSearchParams } {
  const words = new URL(url ?? '/', 'http://localhost').searchParams
  const limit = Math.trunc(Number(words.get('limit') ?? 20))
  return {
    limit: Number.isFinite(limit) ? Math.min(100, Math.max(1, limit)) : 20,
    order: words.get('order') === 'asc' ? 'asc' : 'desc',
    after: words.get('after') ?? undefined,
    words,
  }
}
