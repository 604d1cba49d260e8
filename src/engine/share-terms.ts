import type { StepCoefficients } from './gpu-profile.ts'
import type { StepLoad, StepTime } from './step-time.ts'

/**
 * The closed-form split of one step over its sequences; `step-share.ts` says why it is the fair one.
 *
 *     G(n) = (W^p + (c·n)^p)^(1/p) + lm + host + AR0 + AR1·n       F = W + lm + host + AR0
 *
 *     share_i = F/N + (G(n) − F)·q_i/n
 *               + [decoding] (d0/D + s + k·x_i)
 *               + [prefilling] (p0/P + a·q_i²/2 + b·q_i·x_i)
 *
 *     N sequences, q_i tokens and context x_i of each, n = Σ q; D of them decode, P read a chunk of their prompts
 *
 * The reference documents' GPU has no weights: a chunk pays for its tokens, decodes share their part equally.
 */
export interface ShareTerms {
  /** What each decoding sequence pays beside its context, and what it pays for each token of that. */
  decodeUs: number
  kvReadUs: number
  /** What each chunk pays for being there, and for each of its tokens. */
  chunkUs: number
  chunkTokenUs: number
  /** All shares of the step together, before they are scaled to its time. */
  sumUs: number
}

/** Filled in again by every call: a step is split before the next one begins. */
const TERMS: ShareTerms = { decodeUs: 0, kvReadUs: 0, chunkUs: 0, chunkTokenUs: 0, sumUs: 0 }

export function shareTermsOf(
  c: StepCoefficients,
  stepTime: StepTime,
  load: StepLoad & { readonly chunks: { readonly length: number } },
): ShareTerms {
  const { decodeCount, decodeTokens, prefillTokens } = load
  const chunkCount = load.chunks.length
  if (c.kind === 'reference') {
    const speedUp = 1 - c.batchShare + c.batchShare * Math.sqrt(decodeCount)
    TERMS.decodeUs = 1e6 / (c.decodeTokensPerSecond * speedUp)
    TERMS.kvReadUs = 0
    TERMS.chunkUs = 0
    TERMS.chunkTokenUs = 1e6 / c.prefillTokensPerSecond
    TERMS.sumUs = decodeCount * TERMS.decodeUs + prefillTokens * TERMS.chunkTokenUs
    return TERMS
  }
  const tokens = decodeTokens + prefillTokens
  const fixedUs = c.weightsUs + c.lmHeadUs + c.hostUs + c.allReduceBaseUs
  const perSequence = fixedUs / (decodeCount + chunkCount)
  const perToken = (stepTime.kneeUsOf(tokens) - c.weightsUs) / tokens + c.allReduceUsPerToken
  TERMS.kvReadUs = c.kvReadUsPerToken
  TERMS.decodeUs =
    decodeCount === 0
      ? 0
      : perSequence + (perToken * decodeTokens) / decodeCount + c.decodeBaseUs / decodeCount + c.decodeUsPerSequence
  TERMS.chunkUs = chunkCount === 0 ? 0 : perSequence + c.prefillBaseUs / chunkCount
  TERMS.chunkTokenUs = perToken
  TERMS.sumUs =
    decodeCount * TERMS.decodeUs +
    c.kvReadUsPerToken * load.contextSum +
    chunkCount * TERMS.chunkUs +
    perToken * prefillTokens +
    c.attentionUsPerPair * load.chunkPairs +
    c.contextAttentionUsPerPair * load.contextPairs
  return TERMS
}

/** The share of a chunk of so many tokens after so many computed ones, before scaling. */
export function chunkShareUs(c: StepCoefficients, terms: ShareTerms, tokens: number, contextTokens: number): number {
  const us = terms.chunkUs + terms.chunkTokenUs * tokens
  if (c.kind === 'reference') return us
  return us + (c.attentionUsPerPair * tokens * tokens) / 2 + c.contextAttentionUsPerPair * tokens * contextTokens
}
