import { fnv1a32 } from '../base/rng.ts'
import type { LongWork } from './long-work.ts'

/**
 * A vector for a text, without a model: hashed features (Weinberger et al., "Feature Hashing for Large Scale Multitask
 * Learning", ICML 2009). Words, neighbouring words and pieces of words each add their sign at a few places given by
 * their hash. Texts that share words or stems have similar vectors; all others are nearly orthogonal. Synonyms are not
 * known. Some places of each feature are among the first few dimensions, with less weight, so that the beginning of a
 * vector is a usable vector too.
 *
 * The vector is deterministic and has length 1. A text without any feature (blanks, for example) gets the vector of its
 * own hash.
 */
export const HASHED_DIMENSIONS = 768

/** Where a feature adds its sign: one place in the first `parts` dimensions of the vector, with this weight. */
const PLACES: ReadonlyArray<readonly [parts: number, weight: number]> = [
  [768, 1],
  [768, 1],
  [384, 1],
  [192, 1],
  [96, 0.7],
  [48, 0.5],
  [16, 0.4],
  [4, 0.3],
]
const WEIGHTS = { word: 1, pair: 0.5, piece: 0.35, frequent: 0.15 }
const PIECE_LETTERS = 4
/** Letters of a word that are cut into pieces: more than any word has, and little work between two pauses. */
const WORD_LETTERS_MAX = 256

/** Frequent words, which say little about the topic of a text. */
const FREQUENT = new Set(
  'a an and are as at be been but by can do does for from had has have he her his how i if in is it its me my no not of on or our she so than that the their them then there these they this to was we were what when where which who why will with would you your'.split(
    ' ',
  ),
)

export function* hashedEmbedding(text: string): LongWork<Float32Array> {
  const counts = new Map<string, number>()
  let before = ''
  let done = 0
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    add(counts, `w:${word}`, FREQUENT.has(word) ? WEIGHTS.frequent : WEIGHTS.word)
    if (!FREQUENT.has(word)) {
      if (before !== '') add(counts, `p:${before} ${word}`, WEIGHTS.pair)
      before = word
      // Ends are marked, so that "art" in "part" and in "artist" differ.
      const marked = `_${word.slice(0, WORD_LETTERS_MAX)}_`
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
  return unitVector(counts)
}

const YIELD_CHARACTERS = 256

function add(counts: Map<string, number>, feature: string, weight: number): void {
  counts.set(feature, (counts.get(feature) ?? 0) + weight)
}

function unitVector(counts: ReadonlyMap<string, number>): Float32Array {
  const sums = new Float64Array(HASHED_DIMENSIONS)
  for (const [feature, count] of counts) {
    // The tenth mention of a word says less than the first.
    const weight = count <= 1 ? count : 1 + Math.log(count)
    let state = fnv1a32(feature) | 1
    for (const [parts, share] of PLACES) {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      const place = (state >>> 1) % parts
      sums[place] = (sums[place] as number) + ((state & 1) === 0 ? weight : -weight) * share
    }
  }
  let squares = 0
  for (const sum of sums) squares += sum * sum
  const scale = squares === 0 ? 0 : 1 / Math.sqrt(squares)
  return Float32Array.from(sums, (sum) => sum * scale)
}
