import type { Rng } from '../../base/rng.ts'

/**
 * How many tokens is this text, near enough and at once?
 *
 * Exact counting costs more than the whole hop through the gateway (120 µs per kilobyte of chat), so a text is read
 * once, character by character: each falls into one of a dozen classes, and each *pair* of neighbouring classes has a
 * weight in tokens. Pairs see what single characters cannot: a word begins (space → letter), goes on, or is cut by a
 * digit; a run of punctuation begins or goes on; camelCase turns. The weights were fitted by non-negative least
 * squares to the o200k tokenizer (`bench/micro/estimate.ts` measures what is left of the error). They are whole
 * numbers of 1/1024 token: the sum is the same on every machine. What is systematically wrong for another model's
 * tokenizer is put right by `token-ratio.ts`, from the usage that engines report.
 *
 * Texts beyond 512 characters are sampled: eight stripes stand for the whole, a half of a kilobyte, a sixth of eight,
 * and 3,584 characters of anything longer. Each stripe begins at a random place in its own eighth of the text
 * (stratified sampling), and the last one goes on at the beginning where the text ends, so every character is as likely
 * to be read as any other. A client that knows this file still cannot know which characters are read, and so cannot
 * hide a long prompt between the stripes. The text is first copied into a buffer of 16-bit units: a string may be
 * stored in half a dozen ways, and reading its characters one by one costs a decision each.
 *
 * It does not normalise, split or keep the text, and knows no special tokens; the gateway adds what a chat template puts
 * around each message (`to-request.ts`).
 *
 * Example: "Hello, world" is two words and a comma: letters 'H' after the start, then lower case, ',' after a letter,
 * ' ' and 'w' … ≈ 3 tokens.
 */
const CLASS = {
  start: 0,
  lower: 1,
  upper: 2,
  digit: 3,
  space: 4,
  lineBreak: 5,
  prosePunctuation: 6,
  codePunctuation: 7,
  accentedLatin: 8,
  /** Cyrillic, Greek, Armenian: alphabets that o200k knows by whole syllables. */
  cyrillicAndGreek: 9,
  /** Arabic, Hebrew, Devanagari, Thai … */
  otherScript: 10,
  han: 11,
  kana: 12,
  hangul: 13,
  symbol: 14,
  /** Halves of characters beyond the basic plane: emoji, mostly. */
  surrogate: 15,
} as const

const CLASS_BITS = 4
const UNIT = 1_024

/**
 * Tokens × 1,024 by (class before, class). Read a row as: after a character of this class, the next one costs …
 * Columns in the order of CLASS. Pairs that the fitting texts did not hold cost half a token.
 */
// biome-ignore format: a table is read in rows
const PAIR_WEIGHTS = Int32Array.of(
  // start
  512, 957, 653, 339, 198, 199, 0, 0, 202, 263, 273, 275, 261, 260, 226, 632,
  // lower
  512, 75, 449, 743, 627, 1392, 913, 1274, 128, 512, 228, 248, 283, 141, 412, 512,
  // upper
  512, 462, 374, 835, 59, 0, 518, 1683, 1139, 512, 512, 240, 265, 223, 293, 512,
  // digit
  512, 1112, 3101, 353, 845, 1205, 1142, 58, 271, 146, 512, 275, 270, 204, 329, 512,
  // space
  512, 153, 0, 1307, 35, 604, 725, 730, 0, 701, 504, 440, 313, 607, 993, 651,
  // break
  512, 74, 1092, 501, 735, 0, 473, 1021, 278, 403, 318, 774, 227, 341, 231, 512,
  // prose
  512, 328, 475, 882, 595, 0, 144, 0, 337, 515, 564, 335, 254, 342, 197, 512,
  // code
  512, 535, 848, 1681, 558, 0, 463, 46, 295, 432, 570, 964, 244, 485, 607, 0,
  // latin
  512, 835, 439, 253, 0, 1346, 333, 400, 0, 512, 512, 512, 512, 512, 269, 512,
  // greek
  512, 146, 512, 512, 401, 616, 487, 374, 512, 198, 512, 512, 512, 512, 435, 512,
  // script
  512, 512, 245, 512, 171, 164, 730, 739, 512, 512, 344, 512, 512, 512, 416, 512,
  // han
  512, 243, 237, 228, 541, 386, 445, 973, 512, 512, 512, 879, 796, 512, 392, 512,
  // kana
  512, 256, 261, 270, 204, 340, 223, 312, 512, 512, 512, 653, 807, 512, 446, 512,
  // hangul
  512, 512, 512, 512, 516, 458, 288, 320, 512, 512, 512, 512, 512, 560, 255, 512,
  // symbol
  512, 346, 596, 105, 1247, 729, 344, 172, 512, 491, 512, 304, 302, 255, 111, 856,
  // pair
  512, 512, 512, 512, 727, 512, 512, 0, 512, 512, 512, 512, 512, 512, 1414, 714,
)

const CLASS_OF = makeClassTable()

export const ESTIMATE_DEFAULTS = {
  /** Characters read in full; longer texts are sampled. */
  scanCharsMax: 512,
  /** A stripe's characters: this many, and one more for each 64 of the text. */
  stripeCharsBase: 48,
}

/** Stripes of a sampled text. */
const STRIPE_BITS = 3
const STRIPE_COUNT = 1 << STRIPE_BITS
const PLACE_BITS = 10
const PLACE_MASK = (1 << PLACE_BITS) - 1

/** Texts up to here are copied whole; of longer ones only the stripes. */
const BUFFER_CHARS = 8_192
/** Characters of a stripe of a longer text: random places are not in the processor's caches, so a few less are read. */
const LONG_STRIPE_CHARS = 448
const units = new Uint16Array(BUFFER_CHARS)
const bytes = Buffer.from(units.buffer)

/** Whole tokens, rounded up; 0 only for an empty text. Where a text is sampled is drawn from the random stream. */
export function estimateTokens(text: string, rng: Rng): number {
  const { scanCharsMax, stripeCharsBase } = ESTIMATE_DEFAULTS
  const { length } = text
  if (length > BUFFER_CHARS) return estimateLong(text, rng)
  bytes.write(text, 0, 'utf16le')
  if (length <= scanCharsMax) return Math.ceil(scan(0, length, CLASS.start) / UNIT)
  const stripeChars = stripeCharsBase + (length >> 6)
  let sum = 0
  let drawn = 0
  for (let i = 0; i < STRIPE_COUNT; i++) {
    // Ten random bits say where in its eighth a stripe begins: every character of 8,192. One draw serves three stripes.
    drawn = i % 3 === 0 ? rng.nextUint32() : drawn >>> PLACE_BITS
    const from = (((i << PLACE_BITS) | (drawn & PLACE_MASK)) * length) >>> (PLACE_BITS + STRIPE_BITS)
    const to = from + stripeChars
    sum += scan(from, Math.min(to, length), from === 0 ? CLASS.start : classAt(from - 1))
    if (to > length) sum += scan(0, to - length, CLASS.start)
  }
  return Math.ceil((sum * length) / (UNIT * STRIPE_COUNT * stripeChars))
}

function estimateLong(text: string, rng: Rng): number {
  const { length } = text
  const stripeChars = LONG_STRIPE_CHARS
  let sum = 0
  for (let i = 0; i < STRIPE_COUNT; i++) {
    const from = Math.floor(((i + rng.next()) * length) / STRIPE_COUNT)
    const to = from + stripeChars
    // One character more, to know what stands before the stripe; before the first character stands the last.
    const stripe = from === 0 ? text.slice(-1) + text.slice(0, to) : text.slice(from - 1, to)
    bytes.write(to > length ? stripe + text.slice(0, to - length) : stripe, 0, 'utf16le')
    sum += scan(1, stripeChars + 1, classAt(0))
  }
  return Math.ceil((sum * length) / (UNIT * STRIPE_COUNT * stripeChars))
}

function scan(from: number, to: number, classBefore: number): number {
  let sum = 0
  let before = classBefore << CLASS_BITS
  for (let i = from; i < to; i++) {
    const own = CLASS_OF[units[i] as number] as number
    sum += PAIR_WEIGHTS[before | own] as number
    before = own << CLASS_BITS
  }
  return sum
}

function classAt(index: number): number {
  return CLASS_OF[units[index] as number] as number
}

/** One byte per UTF-16 unit: 64 kB, of which ordinary text touches the first lines only. */
function makeClassTable(): Uint8Array {
  const table = new Uint8Array(65_536).fill(CLASS.symbol)
  const ranges: readonly (readonly [from: number, to: number, kind: number])[] = [
    [0x00, 0x1f, CLASS.lineBreak],
    [0x20, 0x20, CLASS.space],
    [0x21, 0x7e, CLASS.codePunctuation],
    [0x30, 0x39, CLASS.digit],
    [0x41, 0x5a, CLASS.upper],
    [0x61, 0x7a, CLASS.lower],
    [0x7f, 0x7f, CLASS.lineBreak],
    [0xc0, 0x24f, CLASS.accentedLatin],
    [0x370, 0x58f, CLASS.cyrillicAndGreek],
    [0x590, 0x1dff, CLASS.otherScript],
    [0x1100, 0x11ff, CLASS.hangul],
    [0x1e00, 0x1eff, CLASS.accentedLatin],
    [0x3040, 0x30ff, CLASS.kana],
    [0x3400, 0x9fff, CLASS.han],
    [0xac00, 0xd7af, CLASS.hangul],
    [0xd800, 0xdfff, CLASS.surrogate],
    [0xf900, 0xfaff, CLASS.han],
    [0xfb1d, 0xfdff, CLASS.otherScript],
    [0xfe70, 0xfefe, CLASS.otherScript],
  ]
  for (const [from, to, kind] of ranges) table.fill(kind, from, to + 1)
  for (const mark of '.,;:!?\'"()-') table[mark.charCodeAt(0)] = CLASS.prosePunctuation
  return table
}
