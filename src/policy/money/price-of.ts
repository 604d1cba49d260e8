import type { Usage } from '../../domain/delta.ts'
import type { ModelPrice } from '../../domain/ledger.ts'

/**
 * What is this usage sold at? Prompt tokens are the total, and cached ones are a part of it: they are subtracted once,
 * and never below zero, whatever an engine says. A count of zero is a count.
 *
 * The sum is made in nano-dollars × a million and rounded once, half up, so that no order of adding matters. A product
 * of 16 million tokens and a thousand dollars per million is beyond 2⁵³: the arithmetic is `bigint`.
 *
 * Example: 1,000 prompt tokens, 600 of them cached, 200 out; 1.00, 0.10 and 4.00 dollars per million:
 * 400 × 1,000 + 600 × 100 + 200 × 4,000 = 1,260,000 nano-dollars.
 */
export function priceOf(
  price: ModelPrice,
  { promptTokens, cachedTokens, outputTokens }: Pick<Usage, 'promptTokens' | 'cachedTokens' | 'outputTokens'>,
): number {
  const cached = whole(Math.min(cachedTokens, promptTokens))
  const parts =
    BigInt(whole(promptTokens) - cached) * BigInt(price.inputNano) +
    BigInt(cached) * BigInt(price.cachedNano) +
    BigInt(whole(outputTokens)) * BigInt(price.outputNano)
  return price.requestNano + Number((parts + HALF) / MILLION)
}

const MILLION = 1_000_000n
const HALF = MILLION / 2n

/** Counts that were guessed may have fractions. */
const whole = (tokens: number): number => Math.max(0, Math.round(tokens))
