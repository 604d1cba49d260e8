import { timingSafeEqual } from 'node:crypto'
import { Cancellation } from '../../base/cancellation.ts'
import { msToUs } from '../../base/clock.ts'
import { CorpusError } from '../../domain/corpus.ts'
import type { Corpora, CorpusAsk, RetrievalAsk, Retriever } from '../../lifecycle/retrieval-ports.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readJson } from '../../wire/read-body.ts'
import { digestOf, NO_VALID_KEY } from '../authenticate.ts'
import { collectBody } from '../collect-body.ts'
import type { KeyCode, ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'

/**
 * Retrieval for gateways that run it apart: the two ports, as routes. The caller names the tenant, so only our own
 * gateways may call: they share a secret. A gateway that hangs up calls its search off.
 */
export interface RetrievalDeps {
  readonly retriever: Retriever
  readonly corpora: Corpora
  readonly apiKey: string
  readonly bodyBytesMax: number
}

/** The methods of `Corpora` that can be called. */
export const CORPORA_METHODS = [
  'createCorpus',
  'listCorpora',
  'getCorpus',
  'updateCorpus',
  'deleteCorpus',
  'addDocuments',
  'listDocuments',
  'getDocument',
  'getDocuments',
  'documentText',
  'updateDocument',
  'deleteDocument',
  'search',
  'addFile',
  'getFile',
  'getFiles',
  'fileText',
  'listFiles',
  'deleteFile',
  'forgetTenant',
] as const satisfies ReadonlyArray<keyof Corpora>

export function retrievalRoutes(deps: RetrievalDeps): Route[] {
  return [
    { method: 'POST', path: '/internal/retrieve', handle: (exchange) => retrieve(deps, exchange) },
    { method: 'POST', path: '/internal/look-up', handle: (exchange) => lookUp(deps, exchange) },
    { method: 'POST', path: '/internal/corpora/*', handle: (exchange, method) => manage(deps, exchange, method) },
  ]
}

async function bodyOf({ apiKey, bodyBytesMax }: RetrievalDeps, exchange: Exchange): Promise<unknown> {
  const refusal = refuseOtherKeys(apiKey, exchange)
  if (refusal !== undefined) {
    exchange.sendRefusal(refusal)
    return undefined
  }
  const body = await collectBody(exchange, bodyBytesMax)
  if (body.kind === 'gone') return undefined
  const json = body.kind === 'fault' ? body : readJson(body.bytes)
  if (json.kind === 'ok') return json.value
  exchange.sendFault(json.fault)
  return undefined
}

/** Only the shared secret opens the routes of this process. */
export function refuseOtherKeys(apiKey: string, { req }: Pick<Exchange, 'req'>): ToldRefusal<KeyCode> | undefined {
  const given = req.headers.authorization?.replace(/^bearer +/i, '') ?? ''
  return timingSafeEqual(Buffer.from(digestOf(given)), Buffer.from(digestOf(apiKey))) ? undefined : NO_VALID_KEY
}

async function retrieve(deps: RetrievalDeps, exchange: Exchange): Promise<void> {
  const ask = (await bodyOf(deps, exchange)) as Omit<RetrievalAsk, 'cancellation'> | undefined
  if (ask === undefined) return
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('gateway-gone')
  })
  exchange.sendJson(200, JSON.stringify(await deps.retriever.retrieve({ ...ask, cancellation })))
}

/** Longest look-up, for a gateway that does not hang up at its own limit before. */
const LOOK_UP_US = msToUs(1_000)

async function lookUp(deps: RetrievalDeps, exchange: Exchange): Promise<void> {
  const ask = (await bodyOf(deps, exchange)) as Pick<CorpusAsk, 'tenantId' | 'corpus'> | undefined
  if (ask === undefined) return
  const cancellation = new Cancellation()
  const look = await deps.retriever.lookUp({ ...ask, budgetUs: LOOK_UP_US, cancellation })
  exchange.sendJson(200, JSON.stringify(look))
}

/** More arguments than any method of `Corpora` has. */
const ARGUMENTS_MAX = 8

async function manage(deps: RetrievalDeps, exchange: Exchange, name: string): Promise<void> {
  const method = CORPORA_METHODS.find((known) => known === name)
  const args = await bodyOf(deps, exchange)
  if (args === undefined) return
  if (!Array.isArray(args) || args.length > ARGUMENTS_MAX) {
    exchange.sendFault(invalidRequest('The body is a list of the arguments of the method.', null))
    return
  }
  if (method === undefined) {
    exchange.sendFault(invalidRequest(`Corpora have no method '${name.slice(0, 100)}'.`, null, 'unknown-url'))
    return
  }
  try {
    const ask = deps.corpora[method].bind(deps.corpora) as (...all: unknown[]) => Promise<unknown>
    exchange.sendJson(200, JSON.stringify({ value: (await ask(...(args as unknown[]))) ?? null }))
  } catch (error) {
    if (!(error instanceof CorpusError)) throw error
    const { code, message, retryAfterUs } = error
    exchange.sendJson(200, JSON.stringify({ refusal: { code, message, retryAfterUs } }))
  }
}
