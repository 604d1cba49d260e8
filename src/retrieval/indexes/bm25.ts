import type { PassageDraft, TermFacts, TermSearch } from '../../lifecycle/retrieval-ports.ts'
import type { TermCounts } from './analyse-text.ts'

/**
 * How well do words say what a passage is about? BM25 (Robertson, Walker et al., TREC-3, 1994; the variant of
 * Robertson and Zaragoza, 2009), because PostgreSQL's own `ts_rank` knows no document frequency: to it `patients` says as
 * much as `mitochondria`.
 *
 *   score(q, p) = Σ_t idf(t) · f(t)·(k1 + 1) / (f(t) + k1·(1 − b + b·length/pivot)),   idf = ln(1 + (N − n + ½)/(n + ½))
 *
 * The right factor depends on the passage alone and is stored with it; the left one on the corpus as it is now and comes
 * with the question: their inner product is the score. The pivot is a constant instead of the running mean length,
 * because passages are cut to one size anyway and a stored weight cannot follow a mean.
 */
const K1 = 1.2
const B = 0.75

/** Terms in an ordinary passage of `split-passages.ts`: 700 characters of English without its stop words. */
const LENGTH_PIVOT = 60

/**
 * Passages that one search may score by their words. The rarest terms name the candidates; the commoner ones then only
 * help to order them: the best passage without a single rare term is no good answer. On 2,646 passages even 250 find
 * exactly as much as all of them (bench/retrieval/README.md).
 */
export const CANDIDATES_MAX = 800

export function termWeights({ ids, counts, length }: TermCounts): Pick<PassageDraft, 'termIds' | 'termWeights'> {
  const damping = K1 * (1 - B + (B * length) / LENGTH_PIVOT)
  return { termIds: ids, termWeights: counts.map((count) => (count * (K1 + 1)) / (count + damping)) }
}

/** Undefined when the corpus has none of the question's terms. */
export function toTermSearch(facts: TermFacts, limit: number): TermSearch | undefined {
  const known = [...facts.passagesWith].filter(([, passages]) => passages > 0)
  if (known.length === 0) return undefined
  const weights = known
    .map(([termId, passages]) => ({ termId, weight: idf(facts.passageCount, passages) }))
    .sort((a, b) => a.termId - b.termId)
  const oneOf: number[] = []
  let candidates = 0
  for (const [termId, passages] of known.sort((a, b) => a[1] - b[1] || a[0] - b[0])) {
    // The rarest term is always used; otherwise a corpus full of one word could not be searched at all.
    if (oneOf.length > 0 && candidates + passages > CANDIDATES_MAX) break
    oneOf.push(termId)
    candidates += passages
  }
  return { weights, oneOf, limit }
}

/** The share of the question's terms (by idf) in the best hit: how far its words can be trusted. */
export function coverageOf(search: TermSearch, bestScore: number, askedTerms: number, passageCount: number): number {
  let possible = 0
  for (const { weight } of search.weights) possible += weight
  // A term that the corpus does not have counts too, as a rare one.
  possible += Math.max(0, askedTerms - search.weights.length) * idf(passageCount, 1)
  return possible === 0 ? 0 : Math.min(1, bestScore / possible)
}

function idf(passageCount: number, passagesWith: number): number {
  return Math.log(1 + Math.max(0, passageCount - passagesWith + 0.5) / (passagesWith + 0.5))
}
