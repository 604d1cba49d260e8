import type { Replica } from '../../domain/fleet.ts'
import type { StepPrices } from '../../policy/cost/seen-work.ts'
import type { Load } from '../../policy/limits/ledger.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'

/**
 * What the twin of a replica says of its steps, in the terms of an estimate; undefined where no steps are known. The
 * price of a pair of tokens is in the twin's account of reading alone; there it is the part that grows with the square.
 */
export function stepPricesOf(
  pool: PoolPolicies | undefined,
  replica: Replica,
  load: Load | undefined,
): StepPrices | undefined {
  const twin = pool?.twins?.of(replica.id).twin
  if (twin === undefined) return undefined
  const { decode, read } = twin.view()
  const [baseUs = 0, sequenceUs = 0, contextTokenUs = 0, promptTokenUs = 0] = decode
  const paceUs =
    load === undefined
      ? baseUs + sequenceUs
      : twin.meanTokenUs(load.sequences, load.contextTokens, load.prefillMilliPerToken / 1_000)
  const { tokenBudget } = twin
  return { baseUs, sequenceUs, contextTokenUs, promptTokenUs, pairUs: read[3] ?? 0, tokenBudget, paceUs }
}
