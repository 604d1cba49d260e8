import { addLetter, FOLDS, foldHigh, WORD_SEED } from './fold-text.ts'
import { classesOf } from './word-classes.ts'

/**
 * What does a linear model see of a text? Numbers of hashed features, one sentence at a time.
 *
 * Words: each one, each pair, each pair with one word left out, runs of three, the first three of a sentence by their
 * place. Word classes: "ignore", "disregard" and "vergiss" are one class, and runs of classes are features whatever
 * stands between them, so that a phrasing nobody wrote down still looks like one that somebody did. Characters: runs of
 * four, over word borders; they see misspellings and other languages. All share one table of 65,536 places; collisions
 * are left to the weights.
 *
 * The reader is made once and used for every text; nothing is allocated while it reads. One sentence is at most
 * `SENTENCE_LENGTH_MAX` bytes long: a longer one is cut at a gap, or anywhere when it has none.
 */
export const FEATURE_COUNT = 65_536
/** Bytes of UTF-8: long enough for a sentence of 40 words, short enough that one attack outweighs what surrounds it. */
const SENTENCE_LENGTH_MAX = 240
/** Bytes after which a cut at a gap is taken rather than one inside a word. */
const SENTENCE_LENGTH_SOFT = 200
/** A word and the gap behind it have two characters at least, and give eight features at most. */
const WORD_FEATURES_MAX = (SENTENCE_LENGTH_MAX + 1) * 6
/** Words after which two class words no longer belong to one phrase. */
const CLASS_GAP_MAX = 7

const LINE_END = 10
const SPACE = 32
/** Stands before the first word of a sentence. */
const START = 0x3c6ef372
const OPENING_WORDS = 3

/** Bytes of a text that are looked at together: a turn's worth. Reading bytes is many times cheaper than `charCodeAt`. */
const BUFFER_BYTES = 16_384
/** UTF-8 takes up to three bytes for a unit of UTF-16; less room than this is not filled. */
const UNIT_BYTES_MAX = 3

const encoder = new TextEncoder()

/** The letter that a byte is by itself; 0 for gaps, and for bytes of characters that have several. */
const BYTE_FOLDS = new Uint8Array(256)
BYTE_FOLDS.set(FOLDS.subarray(0, 0x80))

export class FeatureReader {
  /** Features of the sentence's words, `wordCount` of them. */
  readonly wordIds = new Uint16Array(WORD_FEATURES_MAX)
  wordCount = 0
  /** Features of the sentence's characters, `characterCount` of them. */
  readonly characterIds = new Uint16Array(SENTENCE_LENGTH_MAX + 1)
  characterCount = 0
  /** Bytes of the sentence. */
  length = 0
  readonly #bytes = new Uint8Array(BUFFER_BYTES)
  #text = ''
  /** Units of the text that are in the buffer or were. */
  #taken = 0
  #at = 0
  #until = 0
  /** Whether the next sentence begins as one, or goes on where a long one was cut. */
  #opens = true
  readonly #phrase = new ClassChain(11)
  readonly #affect = new ClassChain(0x1f35)

  open(text: string): void {
    this.#text = text
    this.#taken = this.#at = this.#until = 0
    this.#opens = true
  }

  /** Lets go of the text; the reader outlives it. */
  close(): void {
    this.open('')
  }

  /** Reads the next sentence that has a word; false at the end of the text. */
  next(): boolean {
    for (;;) {
      if (this.#until - this.#at <= SENTENCE_LENGTH_MAX && this.#taken < this.#text.length) this.#fill()
      if (this.#at >= this.#until) return false
      this.#read()
      if (this.wordCount > 0) return true
    }
  }

  /** Moves what is left to the start of the buffer, and fills the rest. */
  #fill(): void {
    const bytes = this.#bytes
    bytes.copyWithin(0, this.#at, this.#until)
    const kept = this.#until - this.#at
    const units = Math.floor((BUFFER_BYTES - kept) / UNIT_BYTES_MAX)
    let end = Math.min(this.#text.length, this.#taken + units)
    // A pair of surrogates is one character.
    if (end < this.#text.length && (this.#text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--
    const { written } = encoder.encodeInto(this.#text.slice(this.#taken, end), bytes.subarray(kept))
    this.#taken = end
    this.#at = 0
    this.#until = kept + written
  }

  #read(): void {
    const { wordIds, characterIds } = this
    const bytes = this.#bytes
    const start = this.#at
    const until = this.#until
    const end = Math.min(until, start + SENTENCE_LENGTH_MAX)
    let words = 0
    let characters = 0
    let fours = 0
    let one = this.#opens ? START : 0
    let two = 0
    let opening = this.#opens ? OPENING_WORDS : 0
    let at = start
    let isOver = false
    const phrase = this.#phrase
    const affect = this.#affect
    phrase.clear()
    affect.clear()
    while (!isOver) {
      const charactersBefore = characters
      let word = WORD_SEED
      // The letters of one word, nearly all of a text: this loop asks nothing else.
      while (at < end) {
        const byte = bytes[at++] as number
        let fold = BYTE_FOLDS[byte] as number
        if (fold === 0) {
          if (byte < 0x80) {
            isOver = endsSentence(byte, bytes, at, until) || (byte === SPACE && at - start > SENTENCE_LENGTH_SOFT)
            break
          }
          fold = foldUtf8(byte, bytes, at)
          at += byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
          if (fold === 0) break
        }
        word = addLetter(word, fold)
        fours = (fours << 8) | fold
        characterIds[characters++] = mix(fours ^ 0x5f356495)
      }
      if (at >= end) isOver = true
      if (characters === charactersBefore) continue
      fours <<= 8
      characterIds[characters++] = mix(fours ^ 0x5f356495)
      wordIds[words++] = mix(word)
      wordIds[words++] = mix(Math.imul(one, 0x2c1b3c6d) + word)
      if (two !== 0) {
        wordIds[words++] = mix(Math.imul(two, 0x5bd1e995) + word)
        wordIds[words++] = mix(Math.imul(two, 0x297a2d39) + Math.imul(one, 0x2c1b3c6d) + word)
      }
      if (opening > 0) wordIds[words++] = mix(word + Math.imul(opening--, 0x7feb352d))
      const classes = classesOf(word)
      if ((classes & 255) !== 0) words = phrase.add(classes & 255, wordIds, words)
      if (classes > 255) words = affect.add(classes >>> 8, wordIds, words)
      phrase.gap++
      affect.gap++
      two = one
      one = word
    }
    this.wordCount = words
    this.characterCount = characters
    this.length = at - start
    this.#at = at
    this.#opens = at - start < SENTENCE_LENGTH_SOFT
  }
}

/** A line's end; a full stop and the like before a gap: a point inside a number or a name ends nothing. */
function endsSentence(byte: number, bytes: Uint8Array, next: number, until: number): boolean {
  if (byte === LINE_END) return true
  // . ! ? ;
  if (byte !== 46 && byte !== 33 && byte !== 63 && byte !== 59) return false
  const after = next < until ? (bytes[next] as number) : SPACE
  return after < 0x80 && FOLDS[after] === 0
}

/** A character of several bytes; one that begins in the middle, because a sentence was cut there, is a gap. */
function foldUtf8(first: number, bytes: Uint8Array, next: number): number {
  const second = (bytes[next] as number) & 63
  if (first >= 0xc0 && first < 0xe0) {
    const code = ((first & 31) << 6) | second
    return code < FOLDS.length ? (FOLDS[code] as number) : foldHigh(code)
  }
  if (first < 0xe0 || first >= 0xf0) return 0
  return foldHigh(((first & 15) << 12) | (second << 6) | ((bytes[next + 1] as number) & 63))
}

/** The last two classes of a phrase, and how many words ago the last one was. */
class ClassChain {
  gap = 0
  readonly #salt: number
  #one = 0
  #two = 0

  constructor(salt: number) {
    this.#salt = salt
  }

  clear(): void {
    this.#one = this.#two = this.gap = 0
  }

  /** Writes up to three features, and gives the count after them. */
  add(wordClass: number, ids: Uint16Array, from: number): number {
    let count = from
    if (this.gap > CLASS_GAP_MAX) this.#one = this.#two = 0
    ids[count++] = mix(Math.imul(wordClass, 0x45d9f3b) + this.#salt)
    if (this.#one !== 0) ids[count++] = mix(Math.imul(this.#one * 256 + wordClass, 0x45d9f3b) + this.#salt)
    if (this.#two !== 0) {
      ids[count++] = mix(Math.imul(this.#two * 65_536 + this.#one * 256 + wordClass, 0x45d9f3b) + this.#salt)
    }
    this.#two = this.#one
    this.#one = wordClass
    this.gap = 0
    return count
  }
}

/** Spreads a 32-bit number over the table: the high bits of a product depend on all bits of it. */
function mix(value: number): number {
  return Math.imul(value ^ (value >>> 15), 0x85ebca6b) >>> 16
}
