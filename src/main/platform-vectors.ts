import { Cancellation } from '../base/cancellation.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { makeRequestIds, makeSecretSeed } from '../base/live-ids.ts'
import { Rng } from '../base/rng.ts'
import type { Delta } from '../domain/delta.ts'
import type { Request } from '../domain/request.ts'
import { PLATFORM_TENANT_ID, type Tenant } from '../domain/tenant.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Sink } from '../lifecycle/ports.ts'
import type { EmbedOptions } from '../lifecycle/retrieval-ports.ts'
import { serveRequest } from '../lifecycle/serve-request.ts'
import { estimateTokens } from '../policy/planning/estimate.ts'

/**
 * Texts become a request of the platform itself, which is served like any other. A question is interactive, because a
 * request waits for it; passages are offline work. Both end at the embedder's time limit.
 */
export interface PlatformVectorsOptions {
  readonly clock: Clock
  /** Called when needed, because retrieval is made before the platform. */
  readonly platform: () => Platform
  readonly model: string
  readonly timeoutMs: number
}

export function makePlatformVectors({ clock, platform, model, timeoutMs }: PlatformVectorsOptions) {
  const makeId = makeRequestIds()
  const sampling = Rng.stream(makeSecretSeed(), 'passage-sampling')
  const totalUs = msToUs(timeoutMs)
  const slo = { name: 'platform', ttftUs: totalUs, interTokenUs: totalUs, totalUs }
  const tenant: Tenant = {
    id: PLATFORM_TENANT_ID,
    orgId: PLATFORM_TENANT_ID,
    weight: 1,
    slo,
    bands: ['interactive', 'offline'],
    allowance: {},
    bidMax: 0,
    contract: 'reject',
    queueUsMax: totalUs,
  }
  const key = { id: 'embedder', tenantId: tenant.id, weight: 1, allowance: {} }
  return async (texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> => {
    const now = clock.now()
    const request: Request = {
      id: makeId(),
      tenant,
      key,
      kind: 'embedding',
      model,
      segments: texts.map((text) => ({ role: 'user', tokens: Math.max(1, estimateTokens(text, sampling)) })),
      isEstimated: true,
      prefixHashes: [],
      outputTokensMax: undefined,
      choiceCount: 1,
      isStreamed: false,
      band: options.kind === 'question' ? 'interactive' : 'offline',
      bid: 0,
      slo,
      arrivedAt: now,
      deadlineAt: now + totalUs,
      isCutOff: true,
      text: { body: { model, input: texts } },
    }
    const cancellation = new Cancellation()
    const forget = options.cancellation?.onCancel((because) => cancellation.cancel(because))
    const sink = new VectorSink()
    const settled = await serveRequest(platform(), request, cancellation, sink)
    forget?.()
    if (sink.vectors !== undefined && settled.outcome === 'completed') return sink.vectors
    throw new Error(`the embedding model ${model} did not answer: ${settled.refusal?.code ?? settled.because}`)
  }
}

class VectorSink implements Sink {
  vectors: readonly Float32Array[] | undefined

  start(): void {}
  write({ result }: Delta): undefined {
    if (result?.kind === 'vectors') this.vectors = result.vectors
    return undefined
  }
  finish(): void {}
  fail(): void {}
}
