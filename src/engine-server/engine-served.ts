import type { PromptReader } from '../backends/prompt-reader.ts'
import type { SimulatedBackend } from '../backends/simulated.ts'
import type { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import type { Clock } from '../base/clock.ts'
import type { Faults } from './engine-faults.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import type { InFlight } from './in-flight.ts'

/** One simulated engine as its server's routes see it, whatever it answers. */
export interface EngineFacts {
  readonly model: string
  readonly createdAtS: number
  readonly contextTokensMax: number
  readonly clock: Clock
  readonly reader: PromptReader
  readonly metrics: EngineMetrics
  readonly faults: Faults
  readonly bodyBytesMax: number
  readonly stalledReaderUs: number
  /** Of every request that has not been answered. */
  readonly inFlight: InFlight
  /** Ends the process as a crash would: nothing is said, nothing is closed. */
  readonly crash: () => void
}

/** One that generates. */
export interface ServedEngine extends EngineFacts {
  readonly backend: SimulatedBackend
}

/** One that answers in one go: embeddings. */
export interface ServedEncoder extends EngineFacts {
  readonly backend: SimulatedBatchBackend
}
