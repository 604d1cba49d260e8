import { assert } from '../base/assert.ts'
import { Cancellation } from '../base/cancellation.ts'
import { usToSeconds } from '../base/clock.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import { collectBody } from '../gateway/collect-body.ts'
import type { Exchange } from '../gateway/exchange.ts'
import type { Route } from '../gateway/http-server.ts'
import { WholeSink } from '../gateway/http-whole-sink.ts'
import { type EmbeddingBody, embeddingAnswer } from '../wire/embeddings.ts'
import { readVllmEmbedding, unsupportedApi, vllmNoSuchModel } from '../wire/vllm.ts'
import { callOf, ENGINE_BROKEN, meetsFate, planOf, tellEnding } from './engine-call.ts'
import type { EngineFacts, ServedEncoder } from './engine-served.ts'

/**
 * `/v1/embeddings` as in vLLM's server for an embedding model; other endpoints answer that the model cannot do that.
 */
export function engineEmbeddingRoutes(engine: ServedEncoder): Route[] {
  return [
    { method: 'POST', path: '/v1/embeddings', handle: (exchange) => embed(engine, exchange) },
    ...['/v1/chat/completions', '/v1/completions'].map((path) => without(path, 'Chat Completions and Completions')),
  ]
}

/** The answer of a generative engine to `/v1/embeddings`. */
export const noEmbeddings = (): Route => without('/v1/embeddings', 'Embeddings')

const without = (path: string, api: string): Route => ({
  method: 'POST',
  path,
  handle: (exchange) => exchange.sendFault(unsupportedApi(api)),
})

async function embed(engine: ServedEncoder, exchange: Exchange): Promise<void> {
  const collected = await collectBody(exchange, engine.bodyBytesMax)
  if (collected.kind === 'gone') return
  const checked = collected.kind === 'fault' ? collected : readVllmEmbedding(collected.bytes, engine.model)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const body = checked.value
  if (body.model !== engine.model) {
    exchange.sendFault(vllmNoSuchModel(body.model))
    return
  }
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  engine.inFlight.add(cancellation)
  try {
    await serve(engine, exchange, body, cancellation)
  } finally {
    engine.inFlight.delete(cancellation)
  }
}

async function serve(
  engine: ServedEncoder,
  exchange: Exchange,
  body: EmbeddingBody,
  cancellation: Cancellation,
): Promise<void> {
  const sink = makeSink(engine, exchange, body)
  const start = (): void => sink.start({ model: engine.model, rung: FULL_RUNG.name })
  if (await meetsFate(engine, sink, cancellation, start)) return
  const plan = planOf(engine, { keptSegments: [], outputTokensMax: 0 })
  const call = callOf(engine, exchange, { kind: 'embedding', body, cancellation }, { plan, sink })
  try {
    const ending = await engine.backend.generate(call, start)
    if (ending.kind === 'finished') engine.metrics.finished('stop')
    tellEnding(sink, ending, cancellation)
  } catch (error) {
    sink.fail(ENGINE_BROKEN)
    throw error
  }
}

function makeSink(engine: EngineFacts, exchange: Exchange, body: EmbeddingBody): WholeSink {
  const createdAtS = Math.floor(usToSeconds(engine.clock.now()))
  return new WholeSink({
    exchange,
    rateLimits: () => [],
    headersOf: () => [],
    stalledReaderUs: engine.stalledReaderUs,
    encode(result, usage) {
      assert(result.kind === 'vectors', 'texts are answered with vectors')
      const { vectors } = result
      const isBase64 = body.encoding_format === 'base64'
      const more = { id: `embd-${exchange.id.slice(4)}`, created: createdAtS }
      return embeddingAnswer({ model: engine.model, vectors, usage, isBase64, more })
    },
  })
}
