import type { StepModel } from '../../domain/engine-speed.ts'
import { readTerms, type TwinPrior } from './twin-prior.ts'

/**
 * What do a twin's coefficients say of a load, where there is no twin: in a report of what was learned, or in a file?
 * The same formulas as `engine-twin.ts`.
 */
export interface WrittenSpeed {
  readonly tokenBudget: number
  readonly meanTokenUs: StepModel['meanTokenUs']
  readonly prefillUs: (uncachedTokens: number, cachedTokens: number) => number
}

export function speedOfPrior({
  decode,
  read,
  tokenBudget,
}: Pick<TwinPrior, 'decode' | 'read' | 'tokenBudget'>): WrittenSpeed {
  return {
    tokenBudget,
    meanTokenUs: (sequences, contextTokens, prefillTokens) =>
      dot(decode, [1, sequences, contextTokens, Math.min(prefillTokens, tokenBudget)]),
    prefillUs: (uncachedTokens, cachedTokens) => dot(read, readTerms(Math.max(1, uncachedTokens), cachedTokens)),
  }
}

function dot(coefficients: readonly number[], terms: readonly number[]): number {
  let sum = 0
  for (let i = 0; i < coefficients.length; i++) sum += coefficients[i]! * terms[i]!
  return sum
}
