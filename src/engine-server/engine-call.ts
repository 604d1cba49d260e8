import { unreachable } from '../base/assert.ts'
import type { Cancellation } from '../base/cancellation.ts'
import { NO_USAGE } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import { FULL_RUNG, type Plan } from '../domain/plan.ts'
import type { RequestKind } from '../domain/request.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { Exchange } from '../gateway/exchange.ts'
import type { Call, DeltaSink, Ending, Sink } from '../lifecycle/ports.ts'
import type { EngineFacts } from './engine-served.ts'

/** A call of the engine behind an engine server, and the end of the call for the client, for every kind of model. */
export interface EngineAsked {
  readonly kind: RequestKind
  readonly body: object
  readonly cancellation: Cancellation
  /** Salt of the prefix cache, chosen by the client: an engine knows no tenants. */
  readonly salt?: string
  readonly choiceCount?: number
  readonly isStreamed?: boolean
}

let leaseCount = 0

export function callOf(
  engine: EngineFacts,
  exchange: Exchange,
  { kind, body, cancellation, salt = '', choiceCount = 1, isStreamed = false }: EngineAsked,
  { plan, sink }: { readonly plan: Plan; readonly sink: DeltaSink },
): Call {
  const { model } = engine
  const request = {
    id: exchange.id,
    tenant: { ...ANYBODY, id: salt },
    key: { id: '', tenantId: '', weight: 1, allowance: {} },
    kind,
    model,
    segments: [],
    prefixHashes: [],
    outputTokensMax: plan.outputTokensMax,
    choiceCount,
    isStreamed,
    band: 'standard' as const,
    bid: 0,
    slo: ANYBODY.slo,
    arrivedAt: engine.clock.now(),
    deadlineAt: Number.POSITIVE_INFINITY,
    text: { body: body as Readonly<Record<string, unknown>> },
  }
  const replica = { id: 'engine', poolId: 'engine', model, releaseId: `${model}@1`, region: '' }
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

/** A plan of the whole request on the full rung: an engine does no planning. */
export const planOf = (
  { model }: EngineFacts,
  { keptSegments, outputTokensMax }: Pick<Plan, 'keptSegments' | 'outputTokensMax'>,
): Plan => ({
  rung: FULL_RUNG,
  model,
  releaseId: `${model}@1`,
  segments: [],
  keptSegments,
  outputTokensMax,
  estimate: { promptTokens: 0, cachedTokens: 0, outputTokens: 0, outputTokensHigh: 0, cost: 0, engineUs: 0 },
})

/** Applies a fault before the engine gets the request; true if that was the end of the request. */
export async function meetsFate(
  engine: EngineFacts,
  sink: Sink,
  cancellation: Cancellation,
  start: () => void,
): Promise<boolean> {
  const fate = engine.faults.nextFate()
  switch (fate) {
    case 'serve':
      return false
    case 'crash':
      engine.crash()
      return true
    case 'fail':
      sink.fail(ENGINE_BROKEN)
      return true
    case 'hang':
      start()
      await new Promise<void>((resolve) => cancellation.onCancel(() => resolve()))
      tellEnding(sink, { kind: 'cancelled' }, cancellation)
      return true
    default:
      return unreachable(fate)
  }
}

export function tellEnding(sink: Sink, ending: Ending, cancellation: Cancellation): void {
  switch (ending.kind) {
    case 'finished':
      sink.finish(ending.usage ?? NO_USAGE)
      return
    case 'refused':
      sink.fail(ending.refusal)
      return
    case 'lost':
      sink.fail(ENGINE_BROKEN)
      return
    case 'cancelled':
      if (cancellation.because === 'shutting-down') sink.fail(SHUTTING_DOWN)
  }
}

export const ENGINE_BROKEN: Refusal = {
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
