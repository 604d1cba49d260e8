import { CAPITAL, kindOf, LETTER, PLAIN, UNIT_KINDS } from './characters.ts'

/**
 * Where is the first place that may be something? Nearly all of a text is words of letters with a mark behind them that
 * ends every run; they are passed here without a look at anything else.
 */

const BRACKET = 0x28
const DASH = 0x2d
const COLON = 0x3a
const DOT = 0x2e
const SPACE = 0x20
const APOSTROPHE = 0x27

/** Units of a run without digits that may hide something. */
export const HIDDEN_UNITS_MIN = 12

/** Units that a window shows at once. */
const WINDOW_UNITS = 4_096

const encoder = new TextEncoder()

/** The first place from `from` on that may be something. */
export const afterWords = (text: string, from: number): number => {
  const length = text.length
  let word = from
  let seen = 0
  for (let p = from; p < length; p++) {
    const kind = kindOf(text.charCodeAt(p))
    if ((kind & LETTER) !== 0) {
      if (p > word) seen |= kind
      continue
    }
    if ((kind & PLAIN) === 0) {
      const unit = text.charCodeAt(p)
      const next = text.charCodeAt(p + 1)
      if (!isPlainHere(unit, next, p > word)) {
        if (p > word && isInsideWord(unit, next)) continue
        return word
      }
    }
    if (p - word >= HIDDEN_UNITS_MIN && (seen & CAPITAL) !== 0) return word
    word = p + 1
    seen = 0
  }
  return word
}

/**
 * The same for a long text, of which a stretch is copied at a time: a unit of an array costs a third of a unit of a
 * string. A stretch that is not plain ASCII is read as it is.
 */
export class UnitWindow {
  readonly #units = new Uint8Array(WINDOW_UNITS)
  #text = ''
  #from = 0
  #to = 0
  #isAscii = true

  open(text: string): void {
    this.#text = text
    this.#from = this.#to = 0
  }

  /** Lets go of the text; the window outlives it. */
  close(): void {
    this.open('')
  }

  /** The first place from `from` on that may be something. */
  afterWords(from: number): number {
    const { length } = this.#text
    let at = from
    while (at < length) {
      if (at < this.#from || at >= this.#to) this.#show(at)
      if (!this.#isAscii) return afterWords(this.#text, at)
      const word = this.#afterWords(at)
      if (word >= 0) return word
      const next = -1 - word
      // A word as long as the window.
      if (next === this.#from) return afterWords(this.#text, next)
      at = next
      if (at < length) this.#show(at)
    }
    return at
  }

  /** Shows the text from a place on. */
  #show(from: number): void {
    const to = Math.min(this.#text.length, from + WINDOW_UNITS)
    const { read, written } = encoder.encodeInto(this.#text.slice(from, to), this.#units)
    this.#isAscii = read === to - from && written === read
    this.#from = from
    this.#to = to
  }

  /** −1 − the last word's start where the window ends before it is sure. */
  #afterWords(at: number): number {
    const units = this.#units
    const base = this.#from
    const isLast = this.#to === this.#text.length
    // The mark at the window's end is looked at with what follows it.
    const end = this.#to - base - (isLast ? 0 : 1)
    let word = at - base
    let seen = 0
    for (let p = word; p < end; p++) {
      const unit = units[p]!
      const kind = UNIT_KINDS[unit]!
      if ((kind & LETTER) !== 0) {
        if (p > word) seen |= kind
        continue
      }
      if ((kind & PLAIN) === 0) {
        const next = p + 1 === end && isLast ? Number.NaN : units[p + 1]!
        if (!isPlainHere(unit, next, p > word)) {
          if (p > word && isInsideWord(unit, next)) continue
          return base + word
        }
      }
      if (p - word >= HIDDEN_UNITS_MIN && (seen & CAPITAL) !== 0) return base + word
      word = p + 1
      seen = 0
    }
    return isLast ? base + word : -1 - base - word
  }
}

/** Marks that could be part of something, and are not because of what follows: `end. `, `(see`, `namely: `. */
const isPlainHere = (unit: number, next: number, isBehindWord: boolean): boolean => {
  if (unit === BRACKET) return !isBehindWord && (kindOf(next) & LETTER) !== 0
  return (unit === DOT || unit === COLON || unit === APOSTROPHE) && isBehindWord && next === SPACE
}

/** `don't` and `well-known` are words, too. */
const isInsideWord = (unit: number, next: number): boolean =>
  (unit === APOSTROPHE || unit === DASH) && (kindOf(next) & LETTER) !== 0
