import type { EngineSpeed, PoolSpeed } from '../../domain/engine-speed.ts'
import type { Load } from '../limits/ledger.ts'

/**
 * How long should a first token and the next ones take at a replica that carries this load?
 *
 *   first token   everything that waits to be read, in steps beside the others' tokens, and the rest of the step that
 *                 runs when the turn comes
 *   next tokens   a step of the sequences in flight; prompts that are read meanwhile come on top, token by token
 *
 * The answer follows from the load alone. So a replica that was swamped a second ago and is not any more is not thought
 * slow, however few requests have come since to show it.
 *
 * Deliberately not: no correction by experience (`observed-speed.ts`), no queue before the replica.
 * Example: a step beside 40 sequences takes 9 ms against 6 ms beside none; 3,000 tokens wait to be read and 1,000 come.
 * Alone, 4,000 tokens take 100 ms in two steps of 2,048: 100 + 2 × 3 = 106 ms.
 */
export type Steps = NonNullable<PoolSpeed['steps']>

export interface TimesUnderLoad {
  readonly ttftUs: number
  /** From one token to the next, while no prompt is read. */
  readonly tokenUs: number
  /** What each prompt token that is read beside it adds to a step. */
  readonly promptTokenUs: number
}

export interface OwnPrompt {
  readonly promptTokens: number
  readonly cachedTokens: number
  /** What the load counts for it among the prompts that wait to be read; undefined where it had no turn yet. */
  readonly plannedTokens: number | undefined
}

export function timesUnderLoad(alone: EngineSpeed, steps: Steps, load: Load, own: OwnPrompt): TimesUnderLoad {
  const { sequences, contextTokens, prefillTokens } = load
  const tokenUs = steps.meanTokenUs(sequences, contextTokens, 0)
  const promptTokenUs = steps.meanTokenUs(sequences, contextTokens, 1) - tokenUs
  // The others' tokens are computed in the same steps as the prompts, and lengthen each of them.
  const isInLoad = own.plannedTokens !== undefined
  const others = isInLoad ? sequences - 1 : sequences
  const othersTokens = isInLoad ? Math.max(0, contextTokens - own.promptTokens) : contextTokens
  const othersUs = others > 0 ? steps.meanTokenUs(others, othersTokens, 0) : 0
  const besideUs = Math.max(0, othersUs - steps.meanTokenUs(1, 0, 0))
  const aheadTokens = Math.max(0, prefillTokens - (own.plannedTokens ?? 0))
  const toReadTokens = Math.max(1, aheadTokens + own.promptTokens - own.cachedTokens)
  const stepCount = Math.ceil(toReadTokens / steps.tokenBudget)
  // A step runs when the turn comes: half of it is left on the average. Where that step reads a prompt that waits, as
  // much of the prompt is read already, and the two cancel out.
  const restUs = aheadTokens === 0 ? othersUs / 2 : 0
  return {
    ttftUs: alone.prefillUs(toReadTokens, own.cachedTokens) + stepCount * besideUs + restUs,
    tokenUs,
    promptTokenUs,
  }
}
