import type { PoolSpeed } from '../../domain/engine-speed.ts'
import { makeConstantSpeed } from './cost.ts'

/**
 * How fast is an engine that tells nothing of its steps?
 *
 * About as an 8B model on a good GPU, until attempts say otherwise: `ObservedSpeed` corrects this guess within some
 * dozens of requests, and the drain rate within seconds of load.
 */
const TYPICAL = { sequences: 128, promptTokens: 1_000, outputTokens: 200 }

export function speedUnknown(outputWeight: number): PoolSpeed {
  const alone = makeConstantSpeed({ prefillUsPerToken: 40, tokenUs: 12_000 })
  const { promptTokens, outputTokens, sequences } = TYPICAL
  const requestUs = alone.prefillUs(promptTokens, 0) + (outputTokens * 2 * alone.tokenUs(promptTokens)) / sequences
  return {
    alone,
    drainPerReplicaUs: (promptTokens + outputWeight * outputTokens) / requestUs,
    kvTokensMax: Number.POSITIVE_INFINITY,
    steps: undefined,
  }
}
