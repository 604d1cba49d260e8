import { Cancellation } from '../base/cancellation.ts'
import { usToSeconds } from '../base/clock.ts'
import type { Delta } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import { FULL_RUNG, type Plan } from '../domain/plan.ts'
import type { Request, RequestKind } from '../domain/request.ts'
import type { Tenant } from '../domain/tenant.ts'
import { collectBody } from '../gateway/collect-body.ts'
import type { Exchange } from '../gateway/exchange.ts'
import type { Route } from '../gateway/http-server.ts'
import { JsonSink, SseSink } from '../gateway/http-sinks.ts'
import type { Call, DeltaSink, Ending, Sink } from '../lifecycle/ports.ts'
import type { WireFault } from '../wire/openai-error.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { badRequest, cacheSaltOf, contextTooLong, noSuchModel, readVllmChat, readVllmCompletion } from '../wire/vllm.ts'
import type { ServedEngine } from './engine-served.ts'

/**
 * Bytes → sequences → answer, as vLLM's server does it: no tenants and no queue of its own. Whatever is well formed and
 * fits the context goes into the engine at once and waits there. A streamed answer's headers go out as soon as the
 * engine has it, long before the first token.
 */
export function engineGenerateRoutes(engine: ServedEngine): Route[] {
  return [
    { method: 'POST', path: '/v1/chat/completions', handle: (exchange) => generate(engine, exchange, 'chat') },
    { method: 'POST', path: '/v1/completions', handle: (exchange) => generate(engine, exchange, 'completion') },
  ]
}

type Body = ChatBody | CompletionBody

/** Enough for any batch of prompts; each choice is a sequence of its own. */
const CHOICES_MAX = 256

let leaseCount = 0

async function generate(engine: ServedEngine, exchange: Exchange, kind: RequestKind): Promise<void> {
  const collected = await collectBody(exchange, engine.bodyBytesMax)
  if (collected.kind === 'gone') return
  const checked =
    collected.kind === 'fault'
      ? collected
      : kind === 'chat'
        ? readVllmChat(collected.bytes, engine.model)
        : readVllmCompletion(collected.bytes, engine.model)
  const fault = checked.kind === 'fault' ? checked.fault : unsupported(engine, checked.value)
  if (checked.kind === 'fault' || fault !== undefined) {
    exchange.sendFault(fault as WireFault)
    return
  }
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  engine.inFlight.add(cancellation)
  try {
    await serve(engine, exchange, { kind, body: checked.value, cancellation })
  } finally {
    engine.inFlight.delete(cancellation)
  }
}

interface Asked {
  readonly kind: RequestKind
  readonly body: Body
  readonly cancellation: Cancellation
}

async function serve(engine: ServedEngine, exchange: Exchange, asked: Asked): Promise<void> {
  const { body, cancellation } = asked
  const sink = makeSink(engine, exchange, asked)
  const start = (): void => {
    sink.start({ model: engine.model, rung: FULL_RUNG.name })
    if (body.stream === true) exchange.res.flushHeaders()
  }
  const fate = engine.faults.nextFate()
  if (fate === 'crash') {
    engine.crash()
    return
  }
  if (fate === 'fail') {
    sink.fail(BROKEN)
    return
  }
  if (fate === 'hang') {
    start()
    await new Promise<void>((resolve) => cancellation.onCancel(() => resolve()))
    end(sink, { kind: 'cancelled' }, cancellation)
    return
  }
  const planned = await plan(engine, asked)
  if (cancellation.isCancelled) {
    end(sink, { kind: 'cancelled' }, cancellation)
    return
  }
  if ('fault' in planned) {
    exchange.sendFault(planned.fault)
    return
  }
  engine.metrics.asked(body.n ?? 1, planned.plan.outputTokensMax)
  const call = callOf(engine, exchange, asked, { plan: planned.plan, sink: counting(engine, sink) })
  try {
    end(sink, await engine.backend.generate(call, start), cancellation)
  } catch (error) {
    sink.fail(BROKEN)
    throw error
  }
}

function end(sink: Sink, ending: Ending, cancellation: Cancellation): void {
  switch (ending.kind) {
    case 'finished':
      sink.finish(ending.usage ?? { promptTokens: 0, cachedTokens: 0, outputTokens: 0 })
      return
    case 'refused':
      sink.fail(ending.refusal)
      return
    case 'lost':
      sink.fail(BROKEN)
      return
    case 'cancelled':
      if (cancellation.because === 'shutting-down') sink.fail(SHUTTING_DOWN)
  }
}

/** What the answer may be, or what is wrong with the question. */
async function plan(
  engine: ServedEngine,
  { body, cancellation }: Asked,
): Promise<{ plan: Plan } | { fault: WireFault }> {
  const { contextTokensMax } = engine
  const read = await engine.reader.read(body, cancellation)
  const lengths = read.segments.map(({ tokens, otherTokens }) => tokens.length + otherTokens)
  const promptTokens =
    read.kind === 'chat' ? lengths.reduce((sum, length) => sum + length, read.tail.length) : Math.max(...lengths)
  const asked =
    ('max_completion_tokens' in body ? body.max_completion_tokens : undefined) ?? body.max_tokens ?? undefined
  if (read.isCut || promptTokens + (asked ?? 1) > contextTokensMax) {
    return {
      fault: contextTooLong({ contextTokensMax, outputTokens: asked ?? 0, promptTokens, isAtLeast: read.isCut }),
    }
  }
  const keptSegments = read.segments.map((_, index) => index)
  const outputTokensMax = asked ?? contextTokensMax - promptTokens
  const { model } = engine
  const chosen = { rung: FULL_RUNG, model, releaseId: `${model}@1` }
  return { plan: { ...chosen, segments: [], keptSegments, outputTokensMax, estimate: NONE } }
}

/** Nobody plans with what an engine runs. */
const NONE = { promptTokens: 0, cachedTokens: 0, outputTokens: 0, outputTokensHigh: 0, cost: 0, engineUs: 0 }

function unsupported(engine: ServedEngine, body: Body): WireFault | undefined {
  if (body.model !== engine.model) return noSuchModel(body.model)
  const wantsLogprobs = body.logprobs === true || typeof body.logprobs === 'number'
  if (wantsLogprobs) return badRequest('A simulated engine has no log probabilities.', 'logprobs')
  const choiceCount = choiceCountOf(body)
  if (choiceCount > CHOICES_MAX) return badRequest(`n must be at most ${CHOICES_MAX}, got ${choiceCount}.`, 'n')
  if (!('messages' in body)) return undefined
  if (body.tool_choice === 'required' || (typeof body.tool_choice === 'object' && body.tool_choice !== null)) {
    return badRequest('A simulated engine calls no tools; leave tool_choice at "auto" or "none".', 'tool_choice')
  }
  if (body.response_format?.type === 'json_schema') {
    return badRequest('A simulated engine keeps to no JSON schema; json_object works.', 'response_format')
  }
  return undefined
}

function choiceCountOf(body: Body): number {
  const n = body.n ?? 1
  if ('messages' in body || !Array.isArray(body.prompt) || typeof body.prompt[0] === 'number') return n
  return n * body.prompt.length
}

/** An engine knows no tenants: the salt of its cache is the client's affair. */
function callOf(
  engine: ServedEngine,
  exchange: Exchange,
  { kind, body, cancellation }: Asked,
  { plan, sink }: { readonly plan: Plan; readonly sink: DeltaSink },
): Call {
  const now = engine.clock.now()
  const request: Request = {
    id: exchange.id,
    tenant: { ...ANYBODY, id: cacheSaltOf(body) },
    key: { id: '', tenantId: '', weight: 1, allowance: {} },
    kind,
    model: engine.model,
    segments: [],
    prefixHashes: [],
    outputTokensMax: plan.outputTokensMax,
    choiceCount: choiceCountOf(body),
    isStreamed: body.stream === true,
    band: 'standard',
    bid: 0,
    slo: ANYBODY.slo,
    arrivedAt: now,
    deadlineAt: Number.POSITIVE_INFINITY,
    text: { body: body as Readonly<Record<string, unknown>> },
  }
  const replica = { id: 'engine', poolId: 'engine', model: engine.model, releaseId: `${engine.model}@1`, region: '' }
  return { lease: { id: ++leaseCount, ticketId: exchange.id, replica }, request, plan, sink, cancellation }
}

const ANYBODY: Tenant = {
  id: '',
  orgId: '',
  weight: 1,
  slo: { name: '', ttftUs: 0, interTokenUs: 0, totalUs: 0 },
  bands: ['standard'],
  allowance: {},
  bidMax: 0,
  contract: 'reject',
  queueUsMax: 0,
}

const counting = (engine: ServedEngine, sink: Sink): DeltaSink => ({
  write(delta: Delta) {
    for (const { finishReason } of delta.choices ?? []) if (finishReason !== null) engine.metrics.finished(finishReason)
    return sink.write(delta)
  },
})

function makeSink(engine: ServedEngine, exchange: Exchange, { kind, body, cancellation }: Asked): Sink {
  const given = exchange.req.headers['x-request-id']
  const id = typeof given === 'string' ? given.slice(0, 128) : exchange.id.slice(4)
  const options = {
    exchange,
    identity: {
      kind,
      id: `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${id}`,
      createdAtS: Math.floor(usToSeconds(engine.clock.now())),
      includesUsage: body.stream_options?.include_usage === true,
    },
    askedModel: engine.model,
    clock: engine.clock,
    cancellation,
    stalledReaderUs: engine.stalledReaderUs,
    headersOf: () => [],
    rateLimits: () => [],
    listsPassages: false,
    // vLLM sends its headers at once or not at all; whoever waits is in its queue.
    keepAliveUs: engine.stalledReaderUs,
  }
  return body.stream === true ? new SseSink(options) : new JsonSink(options)
}

const BROKEN: Refusal = {
  code: 'internal-error',
  because: 'EngineCore encountered an issue. See stack trace (above) for the root cause.',
  blame: 'platform',
  retryAfterUs: undefined,
}

const SHUTTING_DOWN: Refusal = {
  code: 'shutting-down',
  because: 'The server is shutting down.',
  blame: 'platform',
  retryAfterUs: 1_000_000,
}
