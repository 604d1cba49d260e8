import type { PoolSpeed } from '../../domain/engine-speed.ts'
import type { Steps } from './times-under-load.ts'

/**
 * What is an engine thought to be like before it was seen?
 *
 * A known profile, read off in the twin's own terms: a handful of coefficients, taken from its step-time model at a few
 * ordinary points. The twin keeps a prior's proportions where it has seen nothing, so what matters here is the shape.
 */
export interface TwinPrior {
  readonly name: string
  /** Microseconds of a mean step: its base, and per sequence, context token and prompt token. */
  readonly decode: readonly number[]
  /** Microseconds to a first token alone: base, per token of the first `READ_KNOT`, per token beyond, per pair of tokens. */
  readonly read: readonly number[]
  readonly tokenBudget: number
}

/** Tokens up to which a prompt may be bound by memory or by the host, where its price per token is another than beyond. */
export const READ_KNOT = 1_024

/** A coefficient that a profile does not have is a tenth of a percent of a step: the prior's weight needs a scale. */
const SHARE_MIN = 0.001
const ORDINARY = { sequences: 64, contextTokens: 64_000, promptTokens: 320 }

export function priorOf(
  name: string,
  { alone, steps }: Pick<PoolSpeed, 'alone'> & { readonly steps: Steps },
): TwinPrior {
  const { sequences, contextTokens, promptTokens } = ORDINARY
  const oneUs = steps.meanTokenUs(1, 0, 0)
  const manyUs = steps.meanTokenUs(sequences, 0, 0)
  const readingUs = steps.meanTokenUs(sequences, contextTokens, 0)
  const mixedUs = steps.meanTokenUs(sequences, contextTokens, promptTokens)
  const perSequence = (manyUs - oneUs) / (sequences - 1)
  const floor = mixedUs * SHARE_MIN
  return {
    name,
    decode: [
      Math.max(floor, oneUs - perSequence),
      Math.max(floor / sequences, perSequence),
      Math.max(floor / contextTokens, (readingUs - manyUs) / contextTokens),
      Math.max(floor / promptTokens, (mixedUs - readingUs) / promptTokens),
    ],
    read: readPrior(alone.prefillUs.bind(alone)),
    tokenBudget: steps.tokenBudget,
  }
}

/** Through the times of a short, a middling, a long and a very long prompt. */
function readPrior(prefillUs: (tokens: number, cachedTokens: number) => number): readonly number[] {
  const at = (tokens: number): number => prefillUs(tokens, 0)
  const short = at(16)
  const knot = at(READ_KNOT)
  const long = at(2 * READ_KNOT)
  const veryLong = at(8 * READ_KNOT)
  const early = Math.max(0, (knot - short) / (READ_KNOT - 16))
  // Beyond the knot: linear + quadratic through two points.
  const [x1, y1] = [READ_KNOT, long - knot]
  const [x2, y2] = [7 * READ_KNOT, veryLong - knot]
  const [p1, p2] = [pairsOf(2 * READ_KNOT) - pairsOf(READ_KNOT), pairsOf(8 * READ_KNOT) - pairsOf(READ_KNOT)]
  const quadratic = Math.max(0, (y2 / x2 - y1 / x1) / (p2 / x2 - p1 / x1))
  const late = Math.max(0, (y1 - quadratic * p1) / x1)
  const floor = knot * SHARE_MIN
  return [
    Math.max(floor, short - 16 * early),
    Math.max(floor / READ_KNOT, early - (quadratic * READ_KNOT) / 2),
    Math.max(floor / READ_KNOT, late),
    Math.max(floor / pairsOf(READ_KNOT), quadratic),
  ]
}

const pairsOf = (tokens: number): number => (tokens * tokens) / 2

/** The terms of `TwinPrior.read` for a prompt of this many uncached tokens after these cached ones. */
export function readTerms(uncachedTokens: number, cachedTokens: number): readonly number[] {
  return [
    1,
    Math.min(READ_KNOT, uncachedTokens),
    Math.max(0, uncachedTokens - READ_KNOT),
    pairsOf(uncachedTokens) + uncachedTokens * cachedTokens,
  ]
}
