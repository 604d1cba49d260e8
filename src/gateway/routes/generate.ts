import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, usToMs, usToSeconds } from '../../base/clock.ts'
import { promptTokensOf, type Request } from '../../domain/request.ts'
import type { Archive } from '../../lifecycle/archive-ports.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import type { Sink } from '../../lifecycle/ports.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import type { Checked } from '../../wire/check.ts'
import type { AnswerIdentity, Dialect, Wording } from '../../wire/dialect.ts'
import { CHAT_DIALECT, COMPLETION_DIALECT } from '../../wire/openai-dialects.ts'
import type { WireFault } from '../../wire/openai-error.ts'
import { RESPONSES_DIALECT } from '../../wire/responses-dialect.ts'
import type { ChatBody } from '../../wire/schemas.ts'
import { wantsRunningUsage } from '../../wire/vllm.ts'
import type { Caller, KeyDirectory, PeerDirectory } from '../authenticate.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { JsonSink, SseSink } from '../http-sinks.ts'
import { withTrueSize } from '../prompt-size.ts'
import { type BackgroundDeps, putInBackground } from '../put-in-background.ts'
import { anthropicRateLimitHeaders, rateLimitHeaders } from '../rate-limit-headers.ts'
import { type ReadWording, readStoredResponse } from '../responses-storing.ts'
import type { FoundInBody } from '../screen-body.ts'
import { StoredApartSink } from '../stored-apart-sink.ts'
import { keepingChat, readStoring, type StoringWish, storingHeaders } from '../storing.ts'
import { type Asked, type RequestRules, toRequest } from '../to-request.ts'

/**
 * Bytes → request → ticket: the first row of a request's walk. `serveRequest` knows no HTTP; the answer comes back
 * through the sink. What a client says, and how it is answered, is its dialect's business (`wire/dialect.ts`).
 */
export interface GenerateDeps extends BackgroundDeps {
  readonly platform: Platform
  readonly clock: Clock
  readonly keys: KeyDirectory & PeerDirectory
  readonly rules: RequestRules
  readonly bodyBytesMax: number
  readonly stalledReaderUs: number
  readonly aheadBytesMax: number
  /** After this long without a token, send the headers, then a keep-alive comment at this interval. */
  readonly keepAliveUs: number
  /** Where answers go whose clients ask to store them. */
  readonly archive: Archive
}

export function generateRoutes(deps: GenerateDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/chat/completions',
      handle: (exchange) => serveInDialect(deps, exchange, CHAT_DIALECT),
    },
    {
      method: 'POST',
      path: '/v1/completions',
      handle: (exchange) => serveInDialect(deps, exchange, COMPLETION_DIALECT),
    },
    {
      method: 'POST',
      path: '/v1/responses',
      handle: (exchange) => serveInDialect(deps, exchange, RESPONSES_DIALECT, fromArchive(deps)),
    },
  ]
}

/** Reads a body that may go on from what is stored. */
type Reader = (bytes: Buffer, caller: Caller, exchange: Exchange, found?: FoundInBody) => Promise<ReadWording>

const fromArchive =
  (deps: GenerateDeps): Reader =>
  (bytes, { tenant }, { knownCaller, answerCore }, found) => {
    const sender = answerCore !== undefined ? 'background' : knownCaller === undefined ? 'client' : 'batch'
    return readStoredResponse(deps, tenant, bytes, found, sender)
  }

const NOT_AS_READ: Pick<Asked, 'raw' | 'native'> = { raw: undefined, native: undefined }

/** Serves one request in its dialect, whatever its address is. */
export async function serveInDialect(
  deps: GenerateDeps,
  exchange: Exchange,
  dialect: Dialect,
  reader?: Reader,
): Promise<void> {
  const { route, kind } = dialect
  const caller = callerOrPeerFor(exchange, deps.keys, { route })
  if (caller === undefined) return
  const body = await collectScreened(exchange, deps, { tenant: caller.tenant, dialect: dialect.screenedAs })
  if (body.kind === 'gone') return
  const checked =
    body.kind === 'fault'
      ? body
      : reader === undefined
        ? dialect.read(body.bytes, deps.rules.models.only('chat'))
        : await reader(body.bytes, caller, exchange, body.found)
  // The archive may have taken its time.
  if (reader !== undefined && exchange.res.destroyed) return
  if (checked.kind === 'refusal') {
    exchange.sendRefusal(checked.refusal)
    return
  }
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const storing = storingOf(deps, caller, dialect, checked.value, 'bytes' in body ? body.bytes.length : 0)
  if (storing.kind === 'fault') {
    exchange.sendFault(storing.fault)
    return
  }
  const asked = storing.value?.body ?? checked.value.body
  const { headers } = exchange.req
  const now = (body.kind === 'ok' ? body.readAt : undefined) ?? deps.clock.now()
  // A body that is not sent on as it was read is written anew.
  const { raw, native } = asked === checked.value.body ? checked.value : NOT_AS_READ
  const found = body.kind === 'ok' ? body.found : undefined
  const sized = withTrueSize(
    toRequest({ id: exchange.id, kind, body: asked, raw, native, headers, caller, now, found }, deps.rules),
    deps.rules,
  )
  const read = sized instanceof Promise ? await sized : sized
  if (read.kind === 'fault') {
    exchange.sendFault(inWordsOf(dialect, read.fault))
    return
  }
  const { model, band } = read.request
  if (refuseCall(exchange, caller, { route, model, band })) return
  const { queued } = checked.value
  if (queued !== undefined && body.kind === 'ok') {
    const draft = queued(identityOf(deps, exchange, read.request, dialect, checked.value))
    await putInBackground(deps, exchange, { caller, draft, bytes: body.bytes, found })
    return
  }
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  const wording = storing.value === undefined ? checked.value : { ...checked.value, body: asked }
  const asking = { request: read.request, dialect, wording, cancellation, storing: storing.value }
  await serveRequest(deps.platform, read.request, cancellation, makeSink(deps, exchange, asking))
}

/** Only chat completions can be stored. */
function storingOf(
  { archive }: GenerateDeps,
  { tenant }: Caller,
  { route }: Dialect,
  { body }: Wording,
  bytes: number,
): Checked<StoringWish | undefined> {
  if (route !== 'chat') return { kind: 'ok', value: undefined }
  return readStoring(archive, tenant, body as ChatBody, bytes)
}

/** A fault that was found in the translated body names the parameter that the client sent. */
function inWordsOf({ params }: Dialect, fault: WireFault): WireFault {
  const param = fault.param === null ? undefined : params?.[fault.param]
  if (param === undefined) return fault
  return { ...fault, param, message: fault.message.replace(`'${fault.param}'`, `'${param}'`) }
}

interface Asking {
  readonly request: Request
  readonly dialect: Dialect
  readonly wording: Wording
  readonly cancellation: Cancellation
  readonly storing: StoringWish | undefined
}

function makeSink(
  deps: GenerateDeps,
  exchange: Exchange,
  { request, dialect, wording, cancellation, storing }: Asking,
): Sink {
  const { body } = wording
  const options = {
    exchange,
    rateLimits: () => usualHeaders(deps, request, dialect, wording),
    keepAliveUs: deps.keepAliveUs,
    identity: identityOf(deps, exchange, request, dialect, wording),
    wording,
    clock: deps.clock,
    cancellation,
    stalledReaderUs: deps.stalledReaderUs,
    aheadBytesMax: deps.aheadBytesMax,
    listsPassages: body.spillway?.retrieval?.include_passages === true,
    knownHeaders: wording.headers ?? (storing === undefined ? undefined : storingHeaders(storing)),
  }
  const apart = request.screening?.restorer === undefined ? undefined : wording.apart
  const told = apart === undefined ? options : { ...options, wording: apart }
  const sink = body.stream === true ? new SseSink(told) : new JsonSink(told)
  if (apart !== undefined) return new StoredApartSink(sink, apart.store(options.identity))
  if (storing === undefined) return sink
  const { identity } = options
  return keepingChat(sink, storing, { ...deps, tenant: request.tenant, requestId: exchange.id, identity })
}

const identityOf = (
  { clock }: GenerateDeps,
  exchange: Exchange,
  request: Request,
  { kind, idPrefix }: Dialect,
  { body }: Wording,
): AnswerIdentity => ({
  kind,
  id: idPrefix + (exchange.answerCore ?? exchange.id.slice(4)),
  createdAtS: Math.floor(usToSeconds(clock.now())),
  model: body.model,
  includesUsage: body.stream_options?.include_usage === true,
  includesRunningUsage: wantsRunningUsage(body),
  promptTokens: promptTokensOf(request),
})

/** Headers that answers and refusals have alike: what is left of the caller's budgets, and what was left out. */
function usualHeaders(deps: GenerateDeps, request: Request, { route }: Dialect, { ignored = [] }: Wording): string[] {
  const limits = deps.platform.rateLimits(request)
  const headers = rateLimitHeaders(limits)
  if (route === 'messages')
    for (const part of anthropicRateLimitHeaders(limits, usToMs(deps.clock.now()))) headers.push(part)
  if (ignored.length > 0) headers.push('x-spillway-ignored', ignored.join(', '))
  return headers
}
