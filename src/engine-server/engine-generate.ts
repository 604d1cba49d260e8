import { Cancellation } from '../base/cancellation.ts'
import { usToSeconds } from '../base/clock.ts'
import type { Delta, Usage } from '../domain/delta.ts'
import { FULL_RUNG, type Plan } from '../domain/plan.ts'
import type { RequestKind } from '../domain/request.ts'
import { collectBody } from '../gateway/collect-body.ts'
import type { Exchange } from '../gateway/exchange.ts'
import type { Route } from '../gateway/http-server.ts'
import { JsonSink, SseSink } from '../gateway/http-sinks.ts'
import type { DeltaSink, Sink } from '../lifecycle/ports.ts'
import { IN_OPENAI_WORDS } from '../wire/openai-dialects.ts'
import type { WireFault } from '../wire/openai-error.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import {
  badRequest,
  cacheSaltOf,
  readVllmChat,
  readVllmCompletion,
  vllmContextTooLong,
  vllmNoSuchModel,
  wantsRunningUsage,
} from '../wire/vllm.ts'
import { callOf, ENGINE_BROKEN, meetsFate, planOf, tellEnding } from './engine-call.ts'
import type { ServedEngine } from './engine-served.ts'
import { GatheredSink } from './gathered-sink.ts'

/**
 * Bytes → sequences → answer, as in vLLM's server: no tenants, and no queue of its own. A well-formed request that fits
 * the context goes into the engine at once and waits there. The headers of a stream go out as soon as the engine has
 * queued it, long before the first token.
 */
export function engineGenerateRoutes(engine: ServedEngine): Route[] {
  return [
    { method: 'POST', path: '/v1/chat/completions', handle: (exchange) => generate(engine, exchange, 'chat') },
    { method: 'POST', path: '/v1/completions', handle: (exchange) => generate(engine, exchange, 'completion') },
  ]
}

type Body = ChatBody | CompletionBody

/** Enough for any batch of prompts; each choice is a sequence. */
const CHOICES_MAX = 256

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
  let promptTokens = 0
  const running = (): Usage => gathered.running(promptTokens)
  const sink = makeSink(engine, exchange, asked, wantsRunningUsage(body) ? running : undefined)
  const gathered = new GatheredSink(sink, engine.streamInterval)
  const start = (): void => {
    sink.start({ model: engine.model, rung: FULL_RUNG.name })
    if (body.stream === true) exchange.res.flushHeaders()
  }
  if (await meetsFate(engine, sink, cancellation, start)) return
  const planned = await plan(engine, asked)
  if (cancellation.isCancelled) {
    tellEnding(sink, { kind: 'cancelled' }, cancellation)
    return
  }
  if ('fault' in planned) {
    exchange.sendFault(planned.fault)
    return
  }
  promptTokens = planned.promptTokens
  engine.metrics.asked(body.n ?? 1, planned.plan.outputTokensMax)
  const { kind } = asked
  const what = { kind, body, cancellation, salt: cacheSaltOf(body), choiceCount: choiceCountOf(body) }
  const call = callOf(
    engine,
    exchange,
    { ...what, isStreamed: body.stream === true },
    { plan: planned.plan, sink: counting(engine, body.stream === true ? gathered : sink) },
  )
  try {
    tellEnding(sink, await engine.backend.generate(call, start), cancellation)
  } catch (error) {
    sink.fail(ENGINE_BROKEN)
    throw error
  }
}

/** The bounds of the answer, or what is wrong with the request. */
async function plan(
  engine: ServedEngine,
  { body, cancellation }: Asked,
): Promise<{ plan: Plan; promptTokens: number } | { fault: WireFault }> {
  const { contextTokensMax } = engine
  const read = await engine.reader.read(body, cancellation)
  const lengths = read.segments.map(({ tokens, otherTokens }) => tokens.length + otherTokens)
  const together = (sum: number, length: number): number => sum + length
  const longest = (most: number, length: number): number => Math.max(most, length)
  const promptTokens =
    read.fixed.length + (read.kind === 'chat' ? lengths.reduce(together, read.tail.length) : lengths.reduce(longest, 0))
  const asked = outputBoundOf(body)
  if (read.isCut || promptTokens + (asked ?? 1) > contextTokensMax) {
    return {
      fault: vllmContextTooLong({ contextTokensMax, outputTokens: asked ?? 0, promptTokens, isAtLeast: read.isCut }),
    }
  }
  const keptSegments = read.segments.map((_, index) => index)
  const outputTokensMax = Math.max(1, asked ?? contextTokensMax - promptTokens)
  return { plan: planOf(engine, { keptSegments, outputTokensMax }), promptTokens }
}

function unsupported(engine: ServedEngine, body: Body): WireFault | undefined {
  if (body.model !== engine.model) return vllmNoSuchModel(body.model)
  const choiceCount = choiceCountOf(body)
  if (choiceCount > CHOICES_MAX) return badRequest(`n must be at most ${CHOICES_MAX}, got ${choiceCount}.`, 'n')
  // vLLM takes a bound of no tokens only from those who want their prompt scored; a step of ours always makes one token.
  const isScored = 'echo' in body && body.echo === true
  if (outputBoundOf(body) === 0 && !isScored) return badRequest('max_tokens must be at least 1, got 0.', 'max_tokens')
  if (!('messages' in body)) return undefined
  if ((body.top_logprobs ?? 0) > 0 && body.logprobs !== true) {
    return badRequest('when using `top_logprobs`, `logprobs` must be set to true.', 'top_logprobs')
  }
  if (body.tool_choice === 'required' || (typeof body.tool_choice === 'object' && body.tool_choice !== null)) {
    return badRequest('A simulated engine calls no tools; leave tool_choice at "auto" or "none".', 'tool_choice')
  }
  if (body.response_format?.type === 'json_schema') {
    return badRequest('A simulated engine keeps to no JSON schema; json_object works.', 'response_format')
  }
  return undefined
}

const outputBoundOf = (body: Body): number | undefined =>
  ('max_completion_tokens' in body ? body.max_completion_tokens : undefined) ?? body.max_tokens ?? undefined

function choiceCountOf(body: Body): number {
  const n = body.n ?? 1
  if ('messages' in body || !Array.isArray(body.prompt) || typeof body.prompt[0] === 'number') return n
  return n * body.prompt.length
}

const counting = (engine: ServedEngine, sink: DeltaSink): DeltaSink => ({
  write(delta: Delta) {
    for (const { finishReason } of delta.choices ?? []) if (finishReason !== null) engine.metrics.finished(finishReason)
    return sink.write(delta)
  },
})

function makeSink(
  engine: ServedEngine,
  exchange: Exchange,
  { kind, body, cancellation }: Asked,
  runningUsage: (() => Usage) | undefined,
): Sink {
  const given = exchange.req.headers['x-request-id']
  const id = typeof given === 'string' ? given.slice(0, 128) : exchange.id.slice(4)
  const options = {
    exchange,
    identity: {
      kind,
      id: `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${id}`,
      createdAtS: Math.floor(usToSeconds(engine.clock.now())),
      model: engine.model,
      includesUsage: body.stream_options?.include_usage === true,
    },
    wording: IN_OPENAI_WORDS,
    clock: engine.clock,
    cancellation,
    stalledReaderUs: engine.stalledReaderUs,
    headersOf: () => [],
    rateLimits: () => [],
    listsPassages: false,
    ...(runningUsage !== undefined && { runningUsage }),
    // vLLM sends its headers at once, so there is no keep-alive while a request waits in the engine.
    keepAliveUs: engine.stalledReaderUs,
  }
  return body.stream === true ? new SseSink(options) : new JsonSink(options)
}
