import type { EngineWatcher } from '../backends/engine-driver.ts'
import type { Instant } from '../base/clock.ts'
import type { BatchItem, BatchView } from '../engine/batch-engine.ts'
import type { EngineEvent } from '../engine/engine-event.ts'
import type { EngineView } from '../engine/engine-view.ts'
import type { EngineMetrics } from './engine-metrics.ts'

/** Reports a batching engine in the terms of a generating one: in metrics, its answer counts as the first token. */
export class BatchWatch implements EngineWatcher<BatchItem, BatchView> {
  readonly #metrics: EngineMetrics

  constructor(metrics: EngineMetrics) {
    this.#metrics = metrics
  }

  submitted({ id, promptTokens }: BatchItem, at: Instant): void {
    this.#metrics.submitted({ id, promptTokens, outputTokens: 0 }, at)
  }

  advanced(now: Instant, events: readonly EngineEvent[], view: BatchView): void {
    const told = events.flatMap((event): EngineEvent[] => [
      { kind: 'first-token', at: event.at, id: event.id, cachedTokens: 0 },
      event,
    ])
    this.#metrics.advanced(now, told, engineViewOf(view))
  }

  aborted(id: string): void {
    this.#metrics.aborted(id)
  }
}

/** A batch counts as a step; there are no blocks of keys and values. */
export function engineViewOf({
  running,
  waiting,
  batches,
  finished,
  aborted,
  promptTokens,
  busyUs,
}: BatchView): EngineView {
  return {
    running,
    waiting,
    blockCount: 0,
    blocksFree: 0,
    kvTokensMax: 0,
    kvUsageRatio: 0,
    blocksCached: 0,
    busyUs,
    speculation: undefined,
    steps: batches,
    preemptions: 0,
    prefixQueries: 0,
    prefixHits: 0,
    promptTokens,
    generationTokens: 0,
    contextTokens: 0,
    finished,
    aborted,
  }
}
