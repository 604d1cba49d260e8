import { NO_CLASS, WORD_CLASSES } from './name-words.ts'

/**
 * A text as the tagger of names sees it: tokens (a run of letters, a run of digits, one other character), and for each
 * token the same number of features, hashed into a table. A feature is a fact about a token and its neighbours: its
 * letters, its shape, its kind, and these together.
 */
export const NAME_FEATURE_BITS = 15
/** Features of each token. */
export const NAME_FEATURES = 30

export interface NameTokens {
  readonly count: number
  readonly starts: readonly number[]
  readonly ends: readonly number[]
  /** Tokens that are never part of a name: quotes, braces and the like end one, so JSON stays JSON. */
  readonly breaks: readonly boolean[]
  readonly words: readonly number[]
  readonly shapes: readonly number[]
  readonly classes: readonly number[]
  readonly prefixes: readonly number[]
  readonly suffixes: readonly number[]
  readonly longSuffixes: readonly number[]
  /** 0: on the same line as the token before; 1: behind the end of a sentence; 2: on a new line. */
  readonly places: readonly number[]
}

const TOKEN = /[\p{L}\p{M}]+|\p{N}+|[^\s\p{L}\p{M}\p{N}]/gu
const BREAKS = new Set('"{}[]<>=|\\`“”«»')
const SENTENCE_ENDS = new Set('.!?:;')
const AFFIX_LENGTH = 3

/** Neighbours that are looked at on each side; the arrays have as many empty tokens before and behind. */
export const NAME_MARGIN = 2

export function readNameTokens(text: string): NameTokens {
  const tokens = {
    starts: [] as number[],
    ends: [] as number[],
    breaks: [] as boolean[],
    words: [1, 2],
    shapes: [1, 2],
    classes: [14, 15],
    prefixes: [0, 0],
    suffixes: [0, 0],
    longSuffixes: [0, 0],
    places: [2, 2],
  }
  let from = 0
  let before = ''
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const lower = token.toLowerCase()
    tokens.starts.push(index)
    tokens.ends.push(index + token.length)
    tokens.breaks.push(BREAKS.has(token))
    tokens.words.push(hashOf(lower, 0, lower.length))
    tokens.shapes.push(shapeOf(token, lower))
    tokens.classes.push(WORD_CLASSES.get(lower) ?? NO_CLASS)
    tokens.prefixes.push(hashOf(lower, 0, AFFIX_LENGTH))
    tokens.suffixes.push(hashOf(lower, lower.length - 2, lower.length))
    tokens.longSuffixes.push(hashOf(lower, lower.length - AFFIX_LENGTH, lower.length))
    tokens.places.push(placeOf(text, from, index, before))
    from = index + token.length
    before = token
  }
  const end = { words: [3, 4], shapes: [3, 4], classes: [16, 17], places: [2, 2] }
  tokens.words.push(...end.words)
  tokens.shapes.push(...end.shapes)
  tokens.classes.push(...end.classes)
  tokens.places.push(...end.places)
  return { ...tokens, count: tokens.starts.length }
}

function placeOf(text: string, from: number, to: number, before: string): number {
  if (before === '') return 2
  for (let i = from; i < to; i++) if (text.charCodeAt(i) === 10) return 2
  return SENTENCE_ENDS.has(before) ? 1 : 0
}

const DIGITS_MAX = 7

/** Numbers by their length, words by their capitals, all else by itself. */
function shapeOf(token: string, lower: string): number {
  const code = token.charCodeAt(0)
  if (/^\p{N}/u.test(token)) return 10 + Math.min(DIGITS_MAX, token.length)
  if (!/^[\p{L}\p{M}]/u.test(token)) return 100 + code
  if (token === lower) return token.length === 1 ? 20 : token.length < 4 ? 21 : 22
  const isCapital = token[0] !== lower[0]
  if (token.length === 1) return 23
  if (isCapital && token.slice(1) === lower.slice(1)) return token.length < 4 ? 24 : 25
  if (token === token.toUpperCase()) return token.length < 4 ? 26 : 27
  return isCapital ? 28 : 29
}

/** The rows of the weights for the features of one token, into `rows`. */
export function nameFeaturesOf(t: NameTokens, token: number, rows: Int32Array): void {
  const i = token + NAME_MARGIN
  const { words, shapes, classes, places } = t
  const w2 = words[i - 2] as number
  const w1 = words[i - 1] as number
  const v1 = words[i + 1] as number
  const v2 = words[i + 2] as number
  const s2 = shapes[i - 2] as number
  const s1 = shapes[i - 1] as number
  const s0 = shapes[i] as number
  const r1 = shapes[i + 1] as number
  const r2 = shapes[i + 2] as number
  const c2 = classes[i - 2] as number
  const c1 = classes[i - 1] as number
  const c0 = classes[i] as number
  const d1 = classes[i + 1] as number
  const d2 = classes[i + 2] as number
  const place = places[i] as number
  rows[0] = rowOf(1, 0, 0, 0)
  rows[1] = rowOf(2, words[i] as number, 0, 0)
  rows[2] = rowOf(3, w1, s0, 0)
  rows[3] = rowOf(4, v1, s0, 0)
  rows[4] = rowOf(5, w2, s0, s1)
  rows[5] = rowOf(6, v2, s0, r1)
  rows[6] = rowOf(7, w2, w1, s0)
  rows[7] = rowOf(8, v1, v2, s0)
  rows[8] = rowOf(9, s0, 0, 0)
  rows[9] = rowOf(10, s1, s0, 0)
  rows[10] = rowOf(11, s0, r1, 0)
  rows[11] = rowOf(12, s2, s1, s0)
  rows[12] = rowOf(13, s0, r1, r2)
  rows[13] = rowOf(14, s1, s0, r1)
  rows[14] = rowOf(15, t.prefixes[i] as number, s0, 0)
  rows[15] = rowOf(16, t.suffixes[i] as number, s0, 0)
  rows[16] = rowOf(17, t.longSuffixes[i] as number, s0, 0)
  rows[17] = rowOf(18, c0, s0, 0)
  rows[18] = rowOf(19, c1, s0, 0)
  rows[19] = rowOf(20, d1, s0, 0)
  rows[20] = rowOf(21, c1, c0, s0)
  rows[21] = rowOf(22, c0, d1, s0)
  rows[22] = rowOf(23, c2, c1, s0)
  rows[23] = rowOf(24, d1, d2, s0)
  rows[24] = rowOf(25, c2, s1, s0)
  rows[25] = rowOf(26, d2, r1, s0)
  rows[26] = rowOf(27, place, s0, c0)
  rows[27] = rowOf(28, place, s0, s1)
  rows[28] = rowOf(29, places[i + 1] as number, s0, r1)
  rows[29] = rowOf(30, place, s0, c1)
}

const SHIFT = 32 - NAME_FEATURE_BITS

/** The row of a fact of one kind. */
const rowOf = (kind: number, a: number, b: number, c: number): number => mix(mix(a, b, c), kind, 7) >>> SHIFT

function hashOf(text: string, from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let i = Math.max(0, from); i < to && i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

function mix(a: number, b: number, c: number): number {
  let hash = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b)
  hash = Math.imul((hash ^ (hash >>> 15)) + b, 0xc2b2ae35)
  hash = Math.imul((hash ^ (hash >>> 13)) + c, 0x27d4eb2f)
  return hash ^ (hash >>> 16)
}
