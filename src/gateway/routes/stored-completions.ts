import type { ArchivedAnswer } from '../../domain/archive.ts'
import type { Archive } from '../../lifecycle/archive-ports.ts'
import type { PageAsk } from '../../lifecycle/retrieval-ports.ts'
import { makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readStorable } from '../../wire/read-body.ts'
import { MetadataBody, readPairs, wireCompletion, wireMessages, wireStoredPage } from '../../wire/stored-completions.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { answerCall, BodyFault, type CorpusCall, pageAskOf, type StoreDeps } from './corpora-answer.ts'

/**
 * Stored chat completions, as OpenAI has them. The tenant is always the caller's: another tenant's id is as unknown as an
 * invented one. What was stored can be read, changed and deleted also after the tenant may store no more.
 */
export interface StoredCompletionDeps extends StoreDeps {
  readonly archive: Archive
}

interface Ask extends CorpusCall {
  readonly deps: StoredCompletionDeps
  readonly id: string
}

const KIND = 'chat.completion'

export function storedCompletionRoutes(deps: StoredCompletionDeps): Route[] {
  const under = '/v1/chat/completions/*'
  const route = (method: Route['method'], path: string, handleOf: (rest: string) => Handle | undefined): Route => ({
    method,
    path,
    handle: (exchange, rest) =>
      answerCall(deps, exchange, { route: 'chat', hasText: false }, (call) => {
        const handle = handleOf(rest)
        if (handle === undefined) throw new BodyFault(invalidRequest(UNKNOWN_URL, null, 'unknown-url'))
        return handle({ ...call, deps, id: decoded(rest.split('/')[0] ?? '') })
      }),
  })
  const one = (handle: Handle) => (rest: string) => (rest.includes('/') ? undefined : handle)
  return [
    route('GET', '/v1/chat/completions', () => list),
    route('GET', under, (rest) => (rest.split('/').slice(1).join('/') === 'messages' ? messages : one(retrieve)(rest))),
    route('POST', under, one(update)),
    route('DELETE', under, one(remove)),
  ]
}

type Handle = (ask: Ask) => Promise<unknown>

const UNKNOWN_URL = 'Unknown request URL: /v1/chat/completions has stored completions and their messages.'

async function list({ deps, tenantId, exchange }: Ask): Promise<unknown> {
  const { words, ...page } = pageOf(exchange)
  const metadata = Object.fromEntries(
    [...words].flatMap(([name, value]) => {
      const key = /^metadata\[(.*)\]$/s.exec(name)?.[1]
      return key === undefined ? [] : [[key, value]]
    }),
  )
  const model = words.get('model') ?? undefined
  const found = await deps.archive.list(tenantId, { ...page, kind: KIND, model, metadata })
  if (found === 'no-such-after') throw notFound(page.after ?? '', 'after')
  return wireStoredPage(found.items.map(wireCompletion), found.hasMore)
}

async function retrieve({ deps, tenantId, id }: Ask): Promise<unknown> {
  return wireCompletion(known(await deps.archive.find(tenantId, KIND, id), id))
}

async function messages({ deps, tenantId, id, exchange }: Ask): Promise<unknown> {
  const { after, limit, order } = pageOf(exchange)
  const all = wireMessages(known(await deps.archive.find(tenantId, KIND, id), id))
  if (order === 'desc') all.reverse()
  const start = after === undefined ? 0 : all.findIndex((message) => message['id'] === after) + 1
  if (after !== undefined && start === 0) throw notFound(after, 'after')
  return wireStoredPage(all.slice(start, start + limit), all.length > start + limit)
}

async function update(ask: Ask): Promise<unknown> {
  const { deps, tenantId, id } = ask
  const metadata = await metadataOf(ask)
  return wireCompletion(known(await deps.archive.changeMetadata(tenantId, KIND, id, metadata), id))
}

async function remove({ deps, tenantId, id }: Ask): Promise<unknown> {
  if (!(await deps.archive.remove(tenantId, KIND, id))) throw notFound(id, null)
  return { object: 'chat.completion.deleted', id, deleted: true }
}

const checkBody = makeCheck(MetadataBody)

async function metadataOf({ exchange, deps, tenant }: Ask): Promise<ArchivedAnswer['metadata']> {
  const body = await collectScreened(exchange, deps, { tenant, dialect: 'chat', isUnserved: true })
  if (body.kind === 'gone') throw new BodyFault(invalidRequest('The client has gone.', null))
  const json = body.kind === 'fault' ? body : readStorable(body.bytes)
  const checked = json.kind === 'fault' ? json : checkBody(json.value)
  if (checked.kind === 'fault') throw new BodyFault(checked.fault)
  const metadata = readPairs(checked.value.metadata)
  if (metadata.kind === 'fault') throw new BodyFault(metadata.fault)
  return metadata.value
}

/** Unlike vector stores, completions come oldest first unless asked otherwise. */
function pageOf(exchange: Exchange): PageAsk & { readonly words: URLSearchParams } {
  const page = pageAskOf(exchange.req.url)
  return { ...page, order: page.words.get('order') === 'desc' ? 'desc' : 'asc' }
}

/** A text that is no valid escape is an id that nobody has. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function known(answer: ArchivedAnswer | undefined, id: string): ArchivedAnswer {
  if (answer === undefined) throw notFound(id, null)
  return answer
}

const NAMED_MAX = 100

function notFound(id: string, param: string | null): BodyFault {
  const message = `No stored chat completion or message '${id.slice(0, NAMED_MAX)}' was found.`
  return new BodyFault({ code: 'answer-not-found', message, param }, true)
}
