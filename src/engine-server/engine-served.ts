import type { PromptReader } from '../backends/prompt-reader.ts'
import type { SimulatedBackend } from '../backends/simulated.ts'
import type { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import type { Clock } from '../base/clock.ts'
import type { Faults } from './engine-faults.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import type { InFlight } from './in-flight.ts'

/** One simulated engine as its server's routes see it, for every kind of model. */
export interface EngineFacts {
  readonly model: string
  readonly createdAtS: number
  readonly contextTokensMax: number
  readonly clock: Clock
  readonly reader: PromptReader
  readonly metrics: EngineMetrics
  /** Tokens of a frame after the first. */
  readonly streamInterval: number
  readonly faults: Faults
  readonly bodyBytesMax: number
  readonly stalledReaderUs: number
  /** Every request without a complete answer. */
  readonly inFlight: InFlight
  /** Ends the process like a crash: without an answer, without closing anything. */
  readonly crash: () => void
}

/** An engine that generates. */
export interface ServedEngine extends EngineFacts {
  readonly backend: SimulatedBackend
}

/** An engine that answers without streaming: embeddings. */
export interface ServedEncoder extends EngineFacts {
  readonly backend: SimulatedBatchBackend
}
