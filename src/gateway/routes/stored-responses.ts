import type { ArchivedAnswer } from '../../domain/archive.ts'
import type { Archive } from '../../lifecycle/archive-ports.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { inputOf } from '../../wire/responses-stored.ts'
import { wireList } from '../../wire/vector-stores.ts'
import type { BackgroundResponses } from '../background-responses.ts'
import type { Route } from '../http-server.ts'
import { answerCall, BodyFault, type CorpusCall, pageAskOf, type StoreDeps } from './corpora-answer.ts'

/**
 * Stored responses, as OpenAI has them. The tenant is always the caller's: another tenant's id is as unknown as an
 * invented one. What was stored can be read and deleted also after the tenant may store no more.
 */
export interface StoredResponseDeps extends StoreDeps {
  readonly archive: Archive
  readonly background: BackgroundResponses
}

interface Ask extends CorpusCall {
  readonly archive: Archive
  readonly background: BackgroundResponses
  readonly id: string
}

type Handle = (ask: Ask) => Promise<unknown>

const KIND = 'response'

export function storedResponseRoutes(deps: StoredResponseDeps): Route[] {
  const route = (method: Route['method'], handles: Readonly<Record<string, Handle>>): Route => ({
    method,
    path: '/v1/responses/*',
    handle: (exchange, rest) =>
      answerCall(deps, exchange, { route: 'responses', hasText: false }, (call) => {
        const [id = '', ...below] = rest.split('/')
        const under = below.join('/')
        const handle = Object.hasOwn(handles, under) ? handles[under] : undefined
        if (handle === undefined) throw new BodyFault(invalidRequest(UNKNOWN_URL, null, 'unknown-url'))
        return handle({ ...call, archive: deps.archive, background: deps.background, id })
      }),
  })
  return [
    route('GET', { '': retrieve, input_items: inputItems }),
    route('DELETE', { '': remove }),
    route('POST', { cancel }),
  ]
}

const UNKNOWN_URL = 'Unknown request URL: /v1/responses has stored responses, their input_items and cancel.'

async function retrieve({ archive, background, tenantId, id, exchange }: Ask): Promise<unknown> {
  if (pageAskOf(exchange.req.url).words.get('stream') === 'true') {
    const message = "Unsupported parameter: 'stream'. Responses are streamed while they are made; read the whole one."
    throw new BodyFault(invalidRequest(message, 'stream', 'unsupported-parameter'))
  }
  return background.seen(known(await archive.find(tenantId, KIND, id), id))
}

async function inputItems({ archive, tenantId, id, exchange }: Ask): Promise<unknown> {
  const { after, limit, order } = pageAskOf(exchange.req.url)
  const all = inputOf(known(await archive.find(tenantId, KIND, id), id))
  if (order === 'desc') all.reverse()
  const start = after === undefined ? 0 : all.findIndex((item) => item['id'] === after) + 1
  if (after !== undefined && start === 0) throw notFound(`No input item '${after.slice(0, NAMED_MAX)}'`, 'after')
  return wireList(all.slice(start, start + limit) as { id: string }[], all.length > start + limit)
}

async function remove({ archive, background, tenantId, id }: Ask): Promise<unknown> {
  await background.forget(known(await archive.find(tenantId, KIND, id), id))
  if (!(await archive.remove(tenantId, KIND, id))) throw unknownResponse(id)
  return { id, object: KIND, deleted: true }
}

/** Only what runs in the background can be cancelled; what a client waits for ends when it hangs up. */
async function cancel({ archive, background, tenantId, id }: Ask): Promise<unknown> {
  const told = await background.cancel(known(await archive.find(tenantId, KIND, id), id))
  if (told !== undefined) return told
  throw new BodyFault(invalidRequest('Cannot cancel a synchronous response: it has ended.', null), true)
}

function known(answer: ArchivedAnswer | undefined, id: string): ArchivedAnswer {
  if (answer === undefined) throw unknownResponse(id)
  return answer
}

const NAMED_MAX = 100

const unknownResponse = (id: string): BodyFault => notFound(`Response with id '${id.slice(0, NAMED_MAX)}'`, null)

const notFound = (what: string, param: string | null): BodyFault =>
  new BodyFault({ code: 'answer-not-found', message: `${what} not found.`, param }, true)
