import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, usToMs } from '../../base/clock.ts'
import { Type } from '../../base/schema.ts'
import type { Settled } from '../../domain/entry.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import type { Sink } from '../../lifecycle/ports.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import { makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readJson } from '../../wire/read-body.ts'
import type { KeyDirectory } from '../authenticate.ts'
import { callerFor, refuseCall } from '../check-call.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { KnownModel } from '../model-directory.ts'
import { withTrueSize } from '../prompt-size.ts'
import { type RequestRules, toRequest } from '../to-request.ts'

/**
 * POST /infer {tenant_id, tokens_requested, priority_bid, model}: the reference documents' endpoint, for tools that were
 * written against it. It asks `model`, or the first chat model, for this many tokens and tells how that went; the same
 * admission, fairness and budgets apply. The key must belong to the tenant that is named. A model that is unknown or
 * does not chat is refused as by `/v1/chat/completions`.
 */
export const InferBody = Type.Object({
  tenant_id: Type.String({ minLength: 1 }),
  tokens_requested: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Output tokens.' }),
  model: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Null()], { description: 'The first chat model if absent.' }),
  ),
  priority_bid: Type.Optional(Type.Union([Type.Number(), Type.Null()], { description: 'Order inside your own lane.' })),
})

export interface InferDeps {
  readonly platform: Platform
  readonly clock: Clock
  readonly keys: KeyDirectory
  readonly rules: RequestRules
  readonly bodyBytesMax: number
}

const check = makeCheck(InferBody)

export function inferRoute(deps: InferDeps): Route {
  return { method: 'POST', path: '/infer', handle: (exchange) => infer(deps, exchange) }
}

async function infer(deps: InferDeps, exchange: Exchange): Promise<void> {
  const caller = callerFor(exchange, deps.keys, { route: 'chat' })
  if (caller === undefined) return
  const collected = await collectScreened(exchange, deps, { tenant: caller.tenant, dialect: 'infer' })
  if (collected.kind === 'gone') return
  const json = collected.kind === 'fault' ? collected : readJson(collected.bytes)
  const checked = json.kind === 'fault' ? json : check(json.value)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const asked = checked.value
  if (asked.tenant_id !== caller.tenant.id) {
    const message = `Your key belongs to another tenant than '${asked.tenant_id}'.`
    exchange.sendFault(invalidRequest(message, 'tenant_id', 'wrong-tenant'))
    return
  }
  const isChat = ({ model: { kind = 'chat' } }: KnownModel): boolean => kind === 'chat'
  const model = asked.model ?? deps.rules.models.list().find(isChat)?.model.name ?? ''
  const content = `Write about ${asked.tokens_requested} tokens.`
  const body = {
    model,
    messages: [{ role: 'user' as const, content }],
    max_tokens: asked.tokens_requested,
    spillway: { bid: asked.priority_bid ?? 0 },
  }
  const { headers } = exchange.req
  const found = collected.kind === 'ok' ? collected.found : undefined
  const read = await withTrueSize(
    toRequest({ id: exchange.id, kind: 'chat', body, headers, caller, now: deps.clock.now(), found }, deps.rules),
    deps.rules,
  )
  if (read.kind === 'fault') {
    exchange.sendFault(read.fault)
    return
  }
  if (refuseCall(exchange, caller, { route: 'chat', ...read.request })) return
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  const sink = new CountingSink()
  const settled = await serveRequest(deps.platform, read.request, cancellation, sink)
  if (sink.refusal !== undefined) exchange.sendRefusal(sink.refusal)
  else if (settled.outcome === 'completed' || settled.outcome === 'blocked')
    exchange.sendJson(200, JSON.stringify(inferAnswer(settled)))
}

function inferAnswer(settled: Settled): object {
  const { arrivedAt, grantedAt, firstTokenAt, at } = settled
  const since = (instant: number | undefined): number | null =>
    instant === undefined ? null : Math.round(usToMs(instant - arrivedAt) * 10) / 10
  return {
    request_id: settled.ticketId,
    tenant_id: settled.tenantId,
    status: settled.outcome,
    model: settled.servedModel,
    rung: settled.rung,
    tokens_generated: settled.usage.outputTokens,
    queue_time_ms: since(grantedAt),
    ttft_ms: since(firstTokenAt),
    latency_ms: since(at),
  }
}

/** Counts tokens and discards the text. */
class CountingSink implements Sink {
  refusal: Refusal | undefined

  start(): void {}
  write(): undefined {
    return undefined
  }
  finish(): void {}
  fail(refusal: Refusal): void {
    this.refusal = refusal
  }
}
