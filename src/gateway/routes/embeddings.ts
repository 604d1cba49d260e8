import { assert } from '../../base/assert.ts'
import { readDeployedEmbedding } from '../../wire/azure-dialects.ts'
import { embeddingAnswer, readEmbedding, relayedEmbedding } from '../../wire/embeddings.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { withTrueSize } from '../prompt-size.ts'
import { toEmbeddingRequest } from '../to-whole-request.ts'
import { serveWhole, type WholeDeps } from './whole-answer.ts'

/** POST /v1/embeddings as OpenAI has it: with the admission, fairness and budgets of a chat, charged by its tokens. */
export function embeddingsRoute(deps: WholeDeps): Route {
  return { method: 'POST', path: '/v1/embeddings', handle: (exchange) => embed(deps, exchange) }
}

/** `deployment`: the model, where the address names it and not the body. */
export async function embed(deps: WholeDeps, exchange: Exchange, deployment?: string): Promise<void> {
  const caller = callerOrPeerFor(exchange, deps.keys, { route: 'embeddings' })
  if (caller === undefined) return
  const collected = await collectScreened(exchange, deps, { tenant: caller.tenant, dialect: 'embeddings' })
  if (collected.kind === 'gone') return
  const read = (bytes: Buffer) =>
    deployment === undefined
      ? readEmbedding(bytes, deps.rules.models.only('embedding'))
      : readDeployedEmbedding(bytes, deployment)
  const checked = collected.kind === 'fault' ? collected : read(collected.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { body, raw } = checked.value
  const found = collected.kind === 'ok' ? collected.found : undefined
  const asked = { id: exchange.id, body, raw, headers: exchange.req.headers, caller, now: deps.clock.now(), found }
  const sized = await withTrueSize(toEmbeddingRequest(asked, deps.rules), deps.rules)
  if (sized.kind === 'fault') {
    exchange.sendFault(sized.fault)
    return
  }
  if (refuseCall(exchange, caller, { route: 'embeddings', ...sized.request })) return
  const isBase64 = body.encoding_format === 'base64'
  await serveWhole(deps, exchange, sized.request, (result, usage, _head, text) => {
    assert(result.kind === 'vectors', 'texts are answered with vectors')
    const isAsAsked = result.encoding === (isBase64 ? 'base64' : 'float')
    if (text !== undefined && isAsAsked) return relayedEmbedding(text, { model: body.model, usage })
    return embeddingAnswer({ model: body.model, vectors: result.vectors, usage, isBase64 })
  })
}
