import type { Clock } from '../base/clock.ts'
import type { Embedder, EmbedOptions } from '../lifecycle/retrieval-ports.ts'
import { LaneGate } from './lane-gate.ts'

/**
 * An embedder behind lanes: questions wait in their tenant's lane, and lanes take turns. Passages pass by: the indexer
 * sends a few at a time, and works for all tenants in turn.
 */
export class LanedEmbedder implements Embedder {
  readonly #inner: Embedder
  readonly #gate: LaneGate

  /** `placesMax`: questions that the embedder takes at once. */
  constructor(inner: Embedder, clock: Clock, placesMax: number) {
    this.#inner = inner
    const laneRunningMax = Math.ceil(placesMax / 2)
    this.#gate = new LaneGate(clock, 'the embedder', { placesMax, laneRunningMax, depthMax: QUESTIONS_WAITING_MAX })
  }

  get name(): string {
    return this.#inner.name
  }

  get dimensions(): number {
    return this.#inner.dimensions
  }

  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    const { kind, tenantId = NO_TENANT, cancellation, wait } = options
    if (kind === 'passage') return this.#inner.embed(texts, options)
    return this.#gate.run({
      lane: tenantId,
      isUrgent: true,
      cancellation,
      wait,
      start: () => this.#inner.embed(texts, options),
      cancelled: (because) => new Error(because),
    })
  }

  close(): Promise<void> {
    this.#gate.close(new Error('the embedder is closed'))
    return this.#inner.close()
  }
}

/** Questions of one tenant that may wait: at 20 ms each the last one waits two seconds, longer than any budget. */
const QUESTIONS_WAITING_MAX = 100

/** The lane of questions that no tenant asked. */
const NO_TENANT = '/platform'
