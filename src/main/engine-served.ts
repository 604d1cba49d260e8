import type { PromptReader } from '../backends/prompt-reader.ts'
import type { SimulatedBackend } from '../backends/simulated.ts'
import type { Clock } from '../base/clock.ts'
import type { Faults } from './engine-faults.ts'
import type { EngineMetrics } from './engine-metrics.ts'
import type { InFlight } from './in-flight.ts'

/** One simulated engine as its server's routes see it. */
export interface ServedEngine {
  readonly model: string
  readonly createdAtS: number
  readonly contextTokensMax: number
  readonly clock: Clock
  readonly backend: SimulatedBackend
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
