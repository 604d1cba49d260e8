import { fnv1a32 } from '../base/rng.ts'
import type { LongWork } from './long-work.ts'

/**
 * A vector for a text, without a model: hashed features (Weinberger et al., "Feature Hashing for Large Scale Multitask
 * Learning", ICML 2009). Words, neighbouring words and pieces of words each add their sign at a few places that follow
 * from their hash; so texts that share words, or stems of words, have similar vectors, and the rest are nearly at right
 * angles. It knows no synonyms. Every feature is spread over the whole vector, so that its first part is a vector too.
 *
 * Deterministic, and of length 1. A text without any feature (blanks, say) gets the vector of its own hash.
 */
export const HASHED_DIMENSIONS = 768

/** Places that one feature adds to. */
const PLACES = 8
const WEIGHTS = { word: 1, pair: 0.5, piece: 0.35, frequent: 0.15 }
const PIECE_LETTERS = 4

/** Words that say little about what a text is about. */
const FREQUENT = new Set(
  'a an and are as at be been but by can do does for from had has have he her his how i if in is it its me my no not of on or our she so than that the their them then there these they this to was we were what when where which who why will with would you your'.split(
    ' ',
  ),
)

export function* hashedEmbedding(text: string, dimensions = HASHED_DIMENSIONS): LongWork<Float32Array> {
  const counts = new Map<string, number>()
  let before = ''
  let done = 0
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    add(counts, `w:${word}`, FREQUENT.has(word) ? WEIGHTS.frequent : WEIGHTS.word)
    if (!FREQUENT.has(word)) {
      if (before !== '') add(counts, `p:${before} ${word}`, WEIGHTS.pair)
      before = word
      // Ends are marked: "art" in "part" and in "artist" are two.
      const marked = `_${word}_`
      for (let i = 0; i + PIECE_LETTERS <= marked.length; i++) {
        add(counts, `s:${marked.slice(i, i + PIECE_LETTERS)}`, WEIGHTS.piece)
      }
    }
    done += word.length
    if (done < YIELD_CHARACTERS) continue
    if (yield done) break
    done = 0
  }
  if (counts.size === 0) counts.set(`t:${text}`, 1)
  return unitVector(counts, dimensions)
}

const YIELD_CHARACTERS = 256

function add(counts: Map<string, number>, feature: string, weight: number): void {
  counts.set(feature, (counts.get(feature) ?? 0) + weight)
}

function unitVector(counts: ReadonlyMap<string, number>, dimensions: number): Float32Array {
  const sums = new Float64Array(dimensions)
  for (const [feature, count] of counts) {
    // The tenth mention of a word says less than the first.
    const weight = count <= 1 ? count : 1 + Math.log(count)
    let state = fnv1a32(feature) | 1
    for (let i = 0; i < PLACES; i++) {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      const place = (state >>> 1) % dimensions
      sums[place] = (sums[place] as number) + ((state & 1) === 0 ? weight : -weight)
    }
  }
  let squares = 0
  for (const sum of sums) squares += sum * sum
  const scale = squares === 0 ? 0 : 1 / Math.sqrt(squares)
  return Float32Array.from(sums, (sum) => sum * scale)
}
