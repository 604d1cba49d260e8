import type { Hit } from '../../lifecycle/retrieval-ports.ts'

/**
 * Two searches, one order: weighted reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009),
 * score(p) = Σ_s w_s / (K + rank_s(p)). Ranks can be joined where scores cannot: BM25 has no upper end and cosine has no
 * zero that means anything.
 *
 * K is small, because the first places are what a prompt gets: with the usual 60 the twentieth of both lists beats the
 * first of one. Words weigh more than vectors as long as they match what was asked (`coverage`); a question in other
 * words than the text leaves its words with little to say, and then vectors lead.
 */
const K = 5

/** Ranks beyond this are not joined. */
export const RANKS_MAX = 32

export interface Ranked {
  readonly terms: readonly Hit[] | undefined
  readonly vectors: readonly Hit[] | undefined
  /** 0 … 1: the share of the question's words in the best hit. */
  readonly coverage: number
}

export function joinRanks({ terms, vectors, coverage }: Ranked, limit: number): Hit[] {
  const weights = weightsFor(coverage)
  const scores = new Map<string, number>()
  const add = (hits: readonly Hit[] | undefined, weight: number): void => {
    hits?.slice(0, RANKS_MAX).forEach(({ passageId }, rank) => {
      scores.set(passageId, (scores.get(passageId) ?? 0) + weight / (K + rank + 1))
    })
  }
  add(terms, weights.terms)
  add(vectors, weights.vectors)
  // The best possible score of both halves together is 1.
  const best =
    ((terms === undefined ? 0 : weights.terms) + (vectors === undefined ? 0 : weights.vectors)) / (K + 1) || 1
  return [...scores]
    .map(([passageId, score]) => ({ passageId, score: score / best }))
    .sort((a, b) => b.score - a.score || (a.passageId < b.passageId ? -1 : 1))
    .slice(0, limit)
}

/** Below the first mostly vectors count, above the second mostly words; between them the weight changes linearly. */
const COVERAGE_POOR = 0.15
const COVERAGE_GOOD = 0.4

/**
 * Weight of the half that does not lead. Measured with K on one set of a thousand questions in the text's own words
 * (bench/retrieval/README.md): first place 0.960 at 0.15, 0.948 at 0.25, 0.906 when both weigh the same.
 */
const WEAKER_HALF_WEIGHT = 0.15

export function weightsFor(coverage: number): { readonly terms: number; readonly vectors: number } {
  const trust = Math.min(1, Math.max(0, (coverage - COVERAGE_POOR) / (COVERAGE_GOOD - COVERAGE_POOR)))
  return { terms: WEAKER_HALF_WEIGHT + (1 - WEAKER_HALF_WEIGHT) * trust, vectors: 1 - (1 - WEAKER_HALF_WEIGHT) * trust }
}
