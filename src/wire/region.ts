import type { Instant } from '../base/clock.ts'
import { Type } from '../base/schema.ts'
import type { Outlook } from '../domain/outlook.ts'
import type { Request } from '../domain/request.ts'

/**
 * Messages between the gateways of two regions: outlooks of models, and the headers of a request that is sent on. Times
 * are milliseconds on the wire.
 */
export const REGION_PATH = '/spillway/region'
/** Where gateways of other regions leave checkpoints of their audits, and get ours. */
export const WITNESS_PATH = '/spillway/witness'

export const WitnessBody = Type.Object({
  notes: Type.Array(Type.String({ maxLength: 16_384 }), { maxItems: 64 }),
})

export const witnessAnswer = (notes: readonly string[]): string => JSON.stringify({ object: 'spillway.witness', notes })

/** The checkpoints in such an answer; none when it is something else. */
export function readWitnessAnswer(text: string): readonly string[] {
  try {
    const { notes } = JSON.parse(text) as { readonly notes?: unknown }
    return Array.isArray(notes) ? notes.filter((note) => typeof note === 'string') : []
  } catch {
    return []
  }
}

export function regionAnswer(region: string, outlooks: ReadonlyMap<string, Outlook>): string {
  const models = Object.fromEntries(
    Array.from(outlooks, ([model, outlook]) => [
      model,
      {
        ready_replicas: outlook.readyReplicaCount,
        wait_ms: outlook.waitUs / 1_000,
        prefill_ms_per_token: outlook.prefillUsPerToken / 1_000,
        cost_per_ms: outlook.drainPerUs * 1_000,
        sheds_offline: outlook.isShedding,
      },
    ]),
  )
  return JSON.stringify({ object: 'spillway.region', region, models })
}

/** Undefined when the text is not such a message. */
export function readRegionAnswer(text: string): ReadonlyMap<string, Outlook> | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const { object, models } = (json ?? {}) as { object?: unknown; models?: unknown }
  if (object !== 'spillway.region' || typeof models !== 'object' || models === null) return undefined
  return new Map(Object.entries(models).map(([model, said]) => [model, readOutlook((said ?? {}) as Said)]))
}

type Said = Readonly<Record<string, unknown>>

function readOutlook(said: Said): Outlook {
  return {
    readyReplicaCount: Math.floor(amount(said['ready_replicas'])),
    waitUs: Math.round(amount(said['wait_ms']) * 1_000),
    prefillUsPerToken: amount(said['prefill_ms_per_token']) * 1_000,
    drainPerUs: amount(said['cost_per_ms']) / 1_000,
    isShedding: said['sheds_offline'] === true,
  }
}

const amount = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0

/** The request's tenant, origin, number of hops, and remaining time. */
export function forwardHeaders(request: Request, now: Instant, region: string): string[] {
  const headers = [
    'x-spillway-tenant',
    request.tenant.id,
    'x-spillway-origin',
    request.origin ?? region,
    'x-spillway-hops',
    String((request.hops ?? 0) + 1),
    'x-spillway-deadline-ms',
    String(Math.max(1, Math.floor((request.deadlineAt - now) / 1_000))),
    'x-spillway-cut-off',
    String(request.isCutOff === true),
    'x-spillway-ttft-ms',
    String(Math.max(1, Math.floor(request.slo.ttftUs / 1_000))),
    'x-spillway-band',
    request.band,
  ]
  if (request.bid !== 0) headers.push('x-spillway-bid', String(request.bid))
  if (request.sessionHash !== undefined) headers.push('x-session-id', String(request.sessionHash))
  return headers
}
