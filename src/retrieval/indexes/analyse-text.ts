import { fnv1a32 } from '../../base/rng.ts'
import { stem } from './stem.ts'

/**
 * Which terms does a text have, and how often? The same analysis runs over passages and over questions, here and not in
 * the database, so that every store finds the same words: lower case, English stop words left out, Porter stems;
 * scripts that write without spaces become pairs of characters.
 *
 * A term's id is a hash salted with its corpus. So one index over all corpora never mixes two of them: the same word is
 * another id in another corpus (law L13), and the list behind an id is as long as that corpus needs and no longer.
 */
export interface TermCounts {
  /** Ascending, without repeats. */
  readonly ids: readonly number[]
  readonly counts: readonly number[]
  /** Number of terms, repeats counted: the length in BM25. */
  readonly length: number
}

/** pgvector's sparse vectors have at most a billion dimensions. */
export const TERM_ID_MAX = 1_000_000_000

/**
 * A question with more terms is a pasted document: its first terms say what it is about, and this bounds the search.
 */
export const QUERY_TERMS_MAX = 64

const STOP_WORDS = new Set(
  (
    'a about above after again against all am an and any are as at be because been before being below between both but by ' +
    'can could did do does doing down during each few for from further had has have having he her here hers him his how i ' +
    'if in into is it its itself just me more most my no nor not now of off on once only or other our out over own same ' +
    'she should so some such than that the their them then there these they this those through to too under until up ' +
    'very was we were what when where which while who whom why will with would you your'
  ).split(' '),
)

const WORDS = /[\p{L}\p{N}\p{M}]+/gu
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u
/** A longer word is a key or encoded data, which nobody searches for. */
const WORD_LENGTH_MAX = 64

export function searchTermsOf(text: string): string[] {
  const terms: string[] = []
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORDS)) {
    if (word.length > WORD_LENGTH_MAX || STOP_WORDS.has(word)) continue
    if (UNSPACED.test(word)) addPairs(word, terms)
    else terms.push(stem(word))
  }
  return terms
}

function addPairs(word: string, terms: string[]): void {
  const letters = Array.from(word)
  if (letters.length === 1) terms.push(word)
  for (let i = 0; i + 1 < letters.length; i++) terms.push(`${letters[i]}${letters[i + 1]}`)
}

export function countTerms(corpusId: string, text: string): TermCounts {
  const byId = new Map<number, number>()
  let length = 0
  for (const term of searchTermsOf(text)) {
    const id = termId(corpusId, term)
    byId.set(id, (byId.get(id) ?? 0) + 1)
    length++
  }
  const sorted = [...byId].sort(([a], [b]) => a - b)
  return { ids: sorted.map(([id]) => id), counts: sorted.map(([, count]) => count), length }
}

/** The distinct terms of a question. */
export function queryTermIds(corpusId: string, text: string): number[] {
  const ids = new Set<number>()
  for (const term of searchTermsOf(text)) {
    if (ids.size >= QUERY_TERMS_MAX) break
    ids.add(termId(corpusId, term))
  }
  return [...ids].sort((a, b) => a - b)
}

const termId = (corpusId: string, term: string): number => (fnv1a32(`${corpusId}\n${term}`) % TERM_ID_MAX) + 1
