import { DIGIT, isDigit, isWordUnit, kindOf, SEPARATOR } from './characters.ts'
import { contextBefore, type NumberContext } from './context.ts'

/** Groups of one chain at most: a French number with its country code has six, a card of 19 digits five. */
const GROUPS_MAX = 8
/** Digits of one group at most. A longer one is no number that anybody has. */
const GROUP_DIGITS_MAX = 24
/** Units of one chain at most: an open number is held back in streams, and no longer than this. */
const CHAIN_UNITS_MAX = 40

const SPACE = 0x20
const DASH = 0x2d
const DOT = 0x2e
const SLASH = 0x2f
const BRACKET_OPEN = 0x28
const BRACKET_CLOSE = 0x29
const PLUS = 0x2b

/**
 * Groups of digits with the marks between them, as in `+41 (0)85 806 98 67`, read once from where the first one starts.
 * One object serves all texts, because chains are short and read all the time.
 */
export class NumberChain {
  text = ''
  start = 0
  count = 0
  readonly starts = new Int32Array(GROUPS_MAX)
  readonly ends = new Int32Array(GROUPS_MAX)
  /** The mark before each group: 0 for the first, the mark itself, or a bracket if one is there. */
  readonly marks = new Int32Array(GROUPS_MAX)
  /** Digits up to each group, and the sizes of all groups up to it. */
  readonly #counts = new Int32Array(GROUPS_MAX)
  readonly #sizes = new Int32Array(GROUPS_MAX)
  hasPlus = false
  /** The unit behind the last group's digits. */
  end = 0
  /** The chain goes on beyond the bounds of this class, or a unit follows that makes the last group part of something. */
  isLastPart = false
  #digits = ''
  #context: NumberContext | undefined

  /** Reads the chain that starts here. False: more text may continue it. */
  read(text: string, at: number, isWhole: boolean): boolean {
    this.text = text
    this.start = at
    this.count = 0
    this.hasPlus = false
    this.isLastPart = false
    this.#digits = ''
    this.#context = undefined
    let p = at
    let mark = 0
    if (text.charCodeAt(p) === BRACKET_OPEN) {
      mark = BRACKET_OPEN
      p++
    }
    if (text.charCodeAt(p) === PLUS) {
      this.hasPlus = true
      p++
      if (text.charCodeAt(p) === SPACE) p++
    }
    if (text.charCodeAt(p) === BRACKET_OPEN) {
      mark = BRACKET_OPEN
      p++
    }
    this.end = p
    for (;;) {
      const from = p
      while (isDigit(text.charCodeAt(p)) && p - from <= GROUP_DIGITS_MAX) p++
      if (p === text.length && !isWhole && p - from <= GROUP_DIGITS_MAX) return false
      if (p === from) break
      this.#add(from, p, mark)
      if (p - from > GROUP_DIGITS_MAX) {
        this.isLastPart = true
        return true
      }
      if (this.#isLone()) {
        this.isLastPart = false
        return true
      }
      const next = this.#separator(p)
      if (next === p) break
      if (next === text.length && !isWhole && next - at < CHAIN_UNITS_MAX) return false
      if (!isDigit(text.charCodeAt(next))) break
      if (this.count === GROUPS_MAX || next - at >= CHAIN_UNITS_MAX) {
        this.isLastPart = this.#mark !== SPACE
        return true
      }
      mark = this.#mark
      p = next
    }
    return this.#readEnd(isWhole)
  }

  #mark = 0

  #add(from: number, to: number, mark: number): void {
    const i = this.count++
    this.starts[i] = from
    this.ends[i] = to
    this.marks[i] = mark
    this.#counts[i] = (i === 0 ? 0 : this.#counts[i - 1]!) + to - from
    this.#sizes[i] = (i === 0 ? 0 : this.#sizes[i - 1]! * 10) + Math.min(9, to - from)
    this.end = to
  }

  /** A digit by itself ends a chain: `1 2 3`. With a country code, in first place and behind a dot it may be part of a number. */
  #isLone(): boolean {
    const i = this.count - 1
    if (i === 0 || this.hasPlus || this.size(i) > 1 || this.marks[i] === DOT) return false
    const isZero = this.text.charCodeAt(this.starts[i]!) === 0x30
    if (isZero && this.marks[i] === BRACKET_OPEN) return false
    return !this.text.startsWith('0', this.starts[0]!)
  }

  /** Where the next group would start, behind at most three marks of which at most one is a dash, dot or slash. */
  #separator(from: number): number {
    const { text } = this
    let p = from
    let spaces = 0
    this.#mark = 0
    while (p < from + 3) {
      const unit = text.charCodeAt(p)
      if ((kindOf(unit) & SEPARATOR) === 0) break
      if (unit === SPACE) {
        if (++spaces > 2 || (p > from && text.charCodeAt(p - 1) === SPACE)) break
        if (this.#mark === 0) this.#mark = SPACE
      } else if (unit === BRACKET_OPEN || unit === BRACKET_CLOSE) this.#mark = unit
      else {
        if (this.#mark === DASH || this.#mark === DOT || this.#mark === SLASH) break
        if (this.#mark !== BRACKET_CLOSE) this.#mark = unit
      }
      p++
    }
    return p
  }

  /** Whether the unit behind the last digit makes the last group part of a word, a time, a price or a share. */
  #readEnd(isWhole: boolean): boolean {
    const { text, end } = this
    const unit = text.charCodeAt(end)
    if (Number.isNaN(unit)) return true
    const isMark = unit === 0x3a || unit === 0x2c
    if (isMark && end + 1 === text.length && !isWhole) return false
    // `@`: the digits belong to an address. `x`: an extension, which the rules for telephone numbers read.
    const isExtension = (unit | 0x20) === 0x78
    if (isExtension && end + 1 === text.length && !isWhole) return false
    this.isLastPart =
      (isWordUnit(unit) && !(isExtension && isDigit(text.charCodeAt(end + 1)))) ||
      unit === 0x40 ||
      unit === 0x25 ||
      (isMark && (kindOf(text.charCodeAt(end + 1)) & DIGIT) !== 0)
    return true
  }

  size(i: number): number {
    return this.ends[i]! - this.starts[i]!
  }

  /** All digits up to a group. */
  digits(last: number): string {
    if (this.#digits === '')
      for (let i = 0; i < this.count; i++) this.#digits += this.text.slice(this.starts[i]!, this.ends[i]!)
    return this.#digits.slice(0, this.digitCount(last))
  }

  /** How many digits there are up to a group. */
  digitCount(last: number): number {
    return this.#counts[last]!
  }

  /** One digit of all, as a unit. */
  digitAt(place: number): number {
    let i = 0
    while (i < this.count - 1 && this.#counts[i]! <= place) i++
    return this.text.charCodeAt(this.ends[i]! - this.#counts[i]! + place)
  }

  /** What the words before the chain say it is. */
  get context(): NumberContext {
    this.#context ??= contextBefore(this.text, this.start)
    return this.#context
  }

  /** Whether all marks up to a group are the same one, brackets apart; the first may differ where `isFirstFree`. */
  isEven(last: number, isFirstFree = false): boolean {
    let even = 0
    for (let i = isFirstFree ? 2 : 1; i <= last; i++) {
      const mark = this.marks[i]!
      if (mark === BRACKET_OPEN || mark === BRACKET_CLOSE) continue
      if (even !== 0 && mark !== even) return false
      even = mark
    }
    return true
  }

  /** Whether a group goes on behind `last` with a mark that ties it to this one, as in `1-2-3`. */
  isTied(last: number): boolean {
    if (last + 1 >= this.count) return false
    const mark = this.marks[last + 1]!
    return mark === DASH || mark === DOT || mark === SLASH
  }

  /** Sizes of the groups up to one as the digits of a number, 334 for `555-123-4567`. Sizes over nine are 9. */
  sizes(last: number): number {
    return this.#sizes[last]!
  }
}
