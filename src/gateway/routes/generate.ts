import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, usToSeconds } from '../../base/clock.ts'
import type { Request, RequestKind } from '../../domain/request.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import { readChat, readCompletion } from '../../wire/read-body.ts'
import type { ChatBody, CompletionBody } from '../../wire/schemas.ts'
import type { KeyDirectory, PeerDirectory } from '../authenticate.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectBody } from '../collect-body.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { JsonSink, SseSink } from '../http-sinks.ts'
import { withTrueSize } from '../prompt-size.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
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
}

export function generateRoutes(deps: GenerateDeps): Route[] {
  return [
    { method: 'POST', path: '/v1/chat/completions', handle: (exchange) => generate(deps, exchange, 'chat') },
    { method: 'POST', path: '/v1/completions', handle: (exchange) => generate(deps, exchange, 'completion') },
  ]
}

async function generate(deps: GenerateDeps, exchange: Exchange, kind: RequestKind): Promise<void> {
  const route = kind === 'chat' ? 'chat' : 'completions'
  const caller = callerOrPeerFor(exchange, deps.keys, { route })
  if (caller === undefined) return
  const body = await collectBody(exchange, deps.bodyBytesMax)
  if (body.kind === 'gone') return
  const checked = body.kind === 'fault' ? body : kind === 'chat' ? readChat(body.bytes) : readCompletion(body.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { headers } = exchange.req
  const now = deps.clock.now()
  const read = await withTrueSize(
    toRequest({ id: exchange.id, kind, body: checked.value, headers, caller, now }, deps.rules),
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
  const sink = makeSink(deps, exchange, read.request, checked.value, cancellation)
  await serveRequest(deps.platform, read.request, cancellation, sink)
}

function makeSink(
  deps: GenerateDeps,
  exchange: Exchange,
  request: Request,
  body: ChatBody | CompletionBody,
  cancellation: Cancellation,
): SseSink | JsonSink {
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
  }
  return body.stream === true ? new SseSink(options) : new JsonSink(options)
}
