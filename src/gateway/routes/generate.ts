import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, usToSeconds } from '../../base/clock.ts'
import type { Request, RequestKind } from '../../domain/request.ts'
import type { Archive } from '../../lifecycle/archive-ports.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import type { Sink } from '../../lifecycle/ports.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import type { Checked } from '../../wire/check.ts'
import { readChat, readCompletion } from '../../wire/read-body.ts'
import type { ChatBody, CompletionBody } from '../../wire/schemas.ts'
import { type Caller, identify, type KeyDirectory, type PeerDirectory } from '../authenticate.ts'
import { refuseCall } from '../check-call.ts'
import { collectBody } from '../collect-body.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { JsonSink, SseSink } from '../http-sinks.ts'
import { withTrueSize } from '../prompt-size.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
import { keepingChat, readStoring, type StoringWish, storingHeaders } from '../storing.ts'
import { type RequestRules, toRequest } from '../to-request.ts'

/**
 * Bytes → request → ticket: the first row of a request's walk. `serveRequest` knows no HTTP; the answer comes back
 * through the sink.
 */
export interface GenerateDeps {
  readonly platform: Platform
  readonly clock: Clock
  readonly keys: KeyDirectory & PeerDirectory
  readonly rules: RequestRules
  readonly bodyBytesMax: number
  readonly stalledReaderUs: number
  /** After this long without a token, send the headers, then a keep-alive comment at this interval. */
  readonly keepAliveUs: number
  /** Where answers go whose clients ask to store them. */
  readonly archive: Archive
}

export function generateRoutes(deps: GenerateDeps): Route[] {
  return [
    { method: 'POST', path: '/v1/chat/completions', handle: (exchange) => generate(deps, exchange, 'chat') },
    { method: 'POST', path: '/v1/completions', handle: (exchange) => generate(deps, exchange, 'completion') },
  ]
}

async function generate(deps: GenerateDeps, exchange: Exchange, kind: RequestKind): Promise<void> {
  const caller = identify(deps.keys, exchange)
  if ('code' in caller) {
    exchange.sendRefusal(caller)
    return
  }
  const route = kind === 'chat' ? 'chat' : 'completions'
  if (refuseCall(exchange, caller, { route })) return
  const body = await collectBody(exchange, deps.bodyBytesMax)
  if (body.kind === 'gone') return
  const checked = body.kind === 'fault' ? body : kind === 'chat' ? readChat(body.bytes) : readCompletion(body.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const storing = storingOf(deps, caller, kind, checked.value, 'bytes' in body ? body.bytes.length : 0)
  if (storing.kind === 'fault') {
    exchange.sendFault(storing.fault)
    return
  }
  const asked = storing.value?.body ?? checked.value
  const { headers } = exchange.req
  const now = deps.clock.now()
  const read = await withTrueSize(
    toRequest({ id: exchange.id, kind, body: asked, headers, caller, now }, deps.rules),
    deps.rules,
  )
  if (read.kind === 'fault') {
    exchange.sendFault(read.fault)
    return
  }
  if (refuseCall(exchange, caller, { route, ...read.request })) return
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  const sink = makeSink(deps, exchange, read.request, asked, cancellation, storing.value)
  await serveRequest(deps.platform, read.request, cancellation, sink)
}

/** Only chat completions can be stored. */
function storingOf(
  { archive }: GenerateDeps,
  { tenant }: Caller,
  kind: RequestKind,
  body: ChatBody | CompletionBody,
  bytes: number,
): Checked<StoringWish | undefined> {
  if (kind !== 'chat') return { kind: 'ok', value: undefined }
  return readStoring(archive, tenant, body as ChatBody, bytes)
}

function makeSink(
  deps: GenerateDeps,
  exchange: Exchange,
  request: Request,
  body: ChatBody | CompletionBody,
  cancellation: Cancellation,
  storing: StoringWish | undefined,
): Sink {
  const { kind } = request
  const options = {
    exchange,
    rateLimits: () => rateLimitHeaders(deps.platform.rateLimits(request)),
    keepAliveUs: deps.keepAliveUs,
    identity: {
      kind,
      id: `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${exchange.id.slice(4)}`,
      createdAtS: Math.floor(usToSeconds(deps.clock.now())),
      includesUsage: body.stream_options?.include_usage === true,
    },
    askedModel: body.model,
    clock: deps.clock,
    cancellation,
    stalledReaderUs: deps.stalledReaderUs,
    listsPassages: body.spillway?.retrieval?.include_passages === true,
    ...(storing !== undefined && { headersOf: storingHeaders(storing) }),
  }
  const sink = body.stream === true ? new SseSink(options) : new JsonSink(options)
  if (storing === undefined) return sink
  const identity = { ...options.identity, model: body.model }
  return keepingChat(sink, storing, { ...deps, tenant: request.tenant, requestId: exchange.id, identity })
}
