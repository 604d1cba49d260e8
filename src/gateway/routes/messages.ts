import { COUNT_TOKENS_DIALECT, MESSAGES_DIALECT } from '../../wire/messages-dialect.ts'
import { callerOrPeerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { promptSizeOf } from '../prompt-size.ts'
import { toRequest } from '../to-request.ts'
import { type GenerateDeps, serveInDialect } from './generate.ts'

/**
 * Anthropic's Messages: an answer, served as a chat is, and the size of a prompt. Errors under these paths are in
 * Anthropic's words (`errorsUnder` of the server).
 */
export function messagesRoutes(deps: GenerateDeps): Route[] {
  return [
    { method: 'POST', path: '/v1/messages', handle: (exchange) => serveInDialect(deps, exchange, MESSAGES_DIALECT) },
    { method: 'POST', path: '/v1/messages/count_tokens', handle: (exchange) => countTokens(deps, exchange) },
  ]
}

/**
 * How long is this prompt? Counted as admission counts: by the model's tokenizer where there is one, else estimated,
 * which a header says. No engine is asked and no budget is charged; the ingress bounds how often and how much a caller
 * may ask, and the counter of tokens how much it counts for one tenant at once.
 */
async function countTokens(deps: GenerateDeps, exchange: Exchange): Promise<void> {
  const { route, kind } = COUNT_TOKENS_DIALECT
  const caller = callerOrPeerFor(exchange, deps.keys, { route })
  if (caller === undefined) return
  const collected = await collectScreened(exchange, deps, {
    tenant: caller.tenant,
    dialect: 'messages',
    isUnserved: true,
  })
  if (collected.kind === 'gone') return
  const checked = collected.kind === 'fault' ? collected : COUNT_TOKENS_DIALECT.read(collected.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { body } = checked.value
  const { headers } = exchange.req
  const asked = { id: exchange.id, kind, body, headers, caller, now: deps.clock.now() }
  const read = toRequest(asked, deps.rules)
  if (read.kind === 'fault') {
    exchange.sendFault(read.fault)
    return
  }
  if (refuseCall(exchange, caller, { route, ...read.request })) return
  const { tokens, isEstimated } = await promptSizeOf(read, deps.rules)
  const estimated = isEstimated ? ['x-spillway-estimated', 'true'] : []
  exchange.sendJson(200, JSON.stringify({ input_tokens: tokens }), estimated)
}
