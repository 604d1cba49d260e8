import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, type Instant, msToUs } from '../../base/clock.ts'
import type { Request } from '../../domain/request.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import type { StreamSpec } from '../scenario/scenario.ts'
import { blockHashes, type TraceRequest } from '../traces/trace.ts'
import { maxTokensOf, type Serve, SimSink, segmentsOf } from './client.ts'
import type { ClientScripts } from './scripts.ts'
import { simulatedScreening } from './simulated-screening.ts'

/**
 * Sends a recorded workload: each request at its time, for its tenant, whatever happened to earlier requests. The trace
 * is read one request ahead, so its length costs no memory. What a trace does not say (model, band, `max_tokens`) is as
 * in the scenario's first stream; so is the model, where the platform has none of the recorded name.
 */
export interface TraceClientParts {
  readonly clock: Clock
  readonly scripts: ClientScripts
  readonly serve: Serve
  readonly requests: Iterable<TraceRequest>
  /** The trace's tenants, by id; requests without a tenant are dealt out in turn. */
  readonly callers: ReadonlyArray<{ readonly tenant: Tenant; readonly key: Key }>
  readonly spec: StreamSpec
  /** Names of chat models that requests may ask for; others ask for the stream's model. */
  readonly models?: ReadonlySet<string>
  readonly endAt: Instant
}

/** Tokens per prefix hash: the engine's block. */
const BLOCK_TOKENS = 16

export class TraceClient {
  readonly #parts: TraceClientParts
  readonly #byTenant: ReadonlyMap<string, { readonly tenant: Tenant; readonly key: Key }>
  readonly #requests: Iterator<TraceRequest>
  #count = 0

  constructor(parts: TraceClientParts) {
    this.#parts = parts
    this.#byTenant = new Map(parts.callers.map((caller) => [caller.tenant.id, caller]))
    this.#requests = parts.requests[Symbol.iterator]()
  }

  start(): void {
    this.#sendNext(this.#parts.clock.now())
  }

  #sendNext(startAt: Instant): void {
    const { clock, endAt } = this.#parts
    const next = this.#requests.next()
    if (next.done === true) return
    const at = startAt + next.value.atUs
    if (at >= endAt) return
    clock.at(at, () => {
      void this.#ask(next.value, at)
      this.#sendNext(startAt)
    })
  }

  /** Latency counts from when the request was meant to be sent. */
  async #ask(recorded: TraceRequest, arrivedAt: Instant): Promise<void> {
    const { scripts, serve } = this.#parts
    const request = this.#makeRequest(recorded, arrivedAt)
    scripts.expect(request.id, recorded.outputTokens)
    await serve(request, new Cancellation(), new SimSink())
    scripts.forget(request.id)
  }

  #makeRequest(recorded: TraceRequest, arrivedAt: Instant): Request {
    const { spec, callers } = this.#parts
    const index = this.#count++
    const named = recorded.tenant === undefined ? undefined : this.#byTenant.get(recorded.tenant)
    const { tenant, key } = named ?? callers[index % callers.length]!
    const { asked } = recorded
    const deadlineUs = spec.deadlineMs === undefined ? tenant.slo.totalUs : msToUs(spec.deadlineMs)
    return {
      id: `trace-${index}`,
      tenant,
      key,
      kind: 'chat',
      model: asked !== undefined && this.#parts.models?.has(asked.model) === true ? asked.model : spec.model,
      segments: segmentsOf(recorded.promptTokens, undefined),
      prefixHashes: blockHashes(recorded, BLOCK_TOKENS),
      outputTokensMax: asked === undefined ? maxTokensOf(spec, recorded.outputTokens) : asked.outputTokensMax,
      choiceCount: asked?.choiceCount ?? 1,
      isStreamed: true,
      band: asked?.band ?? spec.band ?? 'standard',
      bid: asked?.bid ?? 0,
      slo: tenant.slo,
      arrivedAt,
      deadlineAt: arrivedAt + Math.min(deadlineUs, asked?.deadlineUs ?? deadlineUs),
      text: undefined,
      ...simulatedScreening(tenant),
      ...(asked?.sessionHash !== undefined && { sessionHash: asked.sessionHash }),
    }
  }
}
