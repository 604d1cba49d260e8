/**
 * What may a pattern of somebody else look like?
 *
 * A small part of the usual expressions, chosen so that time and length are bounded whatever is written: characters,
 * classes, `.`, groups, `|`, repetitions, `\b` and `(?i)` at the start. Repetitions without an upper bound get one. Look-around
 * and references back are refused with what to write instead.
 */

/** Units that a place in a pattern takes: ranges, both ends inside. */
export type UnitRanges = readonly (readonly [from: number, to: number])[]

export type PatternNode =
  | { readonly kind: 'units'; readonly ranges: UnitRanges }
  | { readonly kind: 'all'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'any'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly part: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: 'word-edge'; readonly isEdge: boolean }

/** Units of an expression at most: longer ones are lists, which belong into several patterns. */
export const EXPRESSION_UNITS_MAX = 1_000
/** Units of a match at most: a stream holds no more than this back for a pattern. */
export const MATCH_UNITS_MAX = 128
const REPEATS_MAX = MATCH_UNITS_MAX
/** Repetitions without a bound of their own (`*`, `+`, `{n,}`) end here: longer values than this are no values. */
const OPEN_REPEATS_MAX = 32
const DEPTH_MAX = 16

/** Says why an expression cannot be used, in words for whoever wrote it. */
export class PatternError extends Error {}

const DIGITS: UnitRanges = [[0x30, 0x39]]
const WORD: UnitRanges = [...DIGITS, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]
const SPACES: UnitRanges = [
  [0x09, 0x0d],
  [0x20, 0x20],
]
const LINE_ENDS: UnitRanges = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
]

const without = (ranges: UnitRanges): UnitRanges => {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0])
  const rest: [number, number][] = []
  let from = 0
  for (const [start, end] of sorted) {
    if (start > from) rest.push([from, start - 1])
    from = Math.max(from, end + 1)
  }
  if (from <= 0xffff) rest.push([from, 0xffff])
  return rest
}

const CLASSES: Readonly<Record<string, UnitRanges>> = {
  d: DIGITS,
  w: WORD,
  s: SPACES,
  D: without(DIGITS),
  W: without(WORD),
  S: without(SPACES),
}
const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f', v: '\v' }

class PatternReader {
  readonly #text: string
  readonly #ignoresCase: boolean
  #at: number
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.#ignoresCase = text.startsWith('(?i)')
    this.#at = this.#ignoresCase ? 4 : 0
  }

  read(): PatternNode {
    const node = this.#alternatives()
    if (this.#at < this.#text.length) throw new PatternError(`")" at ${this.#at} has no "(" before it`)
    return node
  }

  #alternatives(): PatternNode {
    if (++this.#depth > DEPTH_MAX) throw new PatternError(`groups are nested more than ${DEPTH_MAX} deep`)
    const parts = [this.#sequence()]
    while (this.#text[this.#at] === '|') {
      this.#at++
      parts.push(this.#sequence())
    }
    this.#depth--
    return parts.length === 1 ? parts[0]! : { kind: 'any', parts }
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = []
    for (;;) {
      const char = this.#text[this.#at]
      if (char === undefined || char === '|' || char === ')') break
      parts.push(this.#repeats(this.#atom(char)))
    }
    return parts.length === 1 ? parts[0]! : { kind: 'all', parts }
  }

  #atom(char: string): PatternNode {
    this.#at++
    if (char === '(') return this.#group()
    if (char === '[') return this.#units(this.#class())
    if (char === '.') return { kind: 'units', ranges: without(LINE_ENDS) }
    if (char === '\\') return this.#escape()
    if (char === '^' || char === '$')
      throw new PatternError(`"${char}": patterns are searched for anywhere in a text; use \\b for the edge of a word`)
    if ('*+?{'.includes(char))
      throw new PatternError(`"${char}" at ${this.#at - 1} repeats nothing; write \\${char} for itself`)
    return this.#units(one(char))
  }

  #group(): PatternNode {
    if (this.#text.startsWith('?:', this.#at)) this.#at += 2
    else if (this.#text[this.#at] === '?')
      throw new PatternError('"(?": of these only "(?:" and "(?i)" at the start are known')
    const node = this.#alternatives()
    if (this.#text[this.#at] !== ')') throw new PatternError('a "(" has no ")"')
    this.#at++
    return node
  }

  #escape(): PatternNode {
    const char = this.#text[this.#at++]
    if (char === undefined) throw new PatternError('the last "\\" has nothing behind it')
    if (char === 'b' || char === 'B') return { kind: 'word-edge', isEdge: char === 'b' }
    const known = CLASSES[char]
    return known === undefined ? this.#units(one(this.#escaped(char))) : { kind: 'units', ranges: known }
  }

  #escaped(char: string): string {
    if (char === 'x' || char === 'u') {
      const digits = this.#text.slice(this.#at, this.#at + (char === 'x' ? 2 : 4))
      if (!(char === 'x' ? /^[0-9a-f]{2}$/i : /^[0-9a-f]{4}$/i).test(digits))
        throw new PatternError(`"\\${char}" needs ${char === 'x' ? 2 : 4} hex digits`)
      this.#at += digits.length
      return String.fromCharCode(Number.parseInt(digits, 16))
    }
    if (/[1-9]/.test(char))
      throw new PatternError(`"\\${char}": references back are not known, since they need more than linear time`)
    if (/[a-z]/i.test(char) && ESCAPES[char] === undefined) throw new PatternError(`"\\${char}" is not known`)
    return ESCAPES[char] ?? char
  }

  #class(): UnitRanges {
    const isNot = this.#text[this.#at] === '^'
    if (isNot) this.#at++
    const ranges: (readonly [number, number])[] = []
    for (let isFirst = true; ; isFirst = false) {
      const char = this.#text[this.#at++]
      if (char === undefined) throw new PatternError('a "[" has no "]"')
      if (char === ']' && !isFirst) break
      const from = char === '\\' ? this.#classEscape() : char
      if (typeof from !== 'string') {
        ranges.push(...from)
        continue
      }
      const isRange =
        this.#text[this.#at] === '-' && this.#text[this.#at + 1] !== ']' && this.#at + 1 < this.#text.length
      if (!isRange) {
        ranges.push(...one(from))
        continue
      }
      this.#at++
      const last = this.#text[this.#at++]!
      const to = last === '\\' ? this.#classEscape() : last
      if (typeof to !== 'string' || to < from) throw new PatternError(`"${from}-${last}" is no range`)
      ranges.push([from.charCodeAt(0), to.charCodeAt(0)])
    }
    const all = this.#ignoresCase ? bothCases(ranges) : ranges
    return isNot ? without(all) : all
  }

  #classEscape(): string | UnitRanges {
    const char = this.#text[this.#at++]
    if (char === undefined) throw new PatternError('a "[" has no "]"')
    return CLASSES[char] ?? this.#escaped(char)
  }

  #units(ranges: UnitRanges): PatternNode {
    return { kind: 'units', ranges: this.#ignoresCase ? bothCases(ranges) : ranges }
  }

  #repeats(part: PatternNode): PatternNode {
    const char = this.#text[this.#at]
    if (char === '?') return this.#repeat(part, { min: 0, max: 1, length: 1 })
    if (char === '*') return this.#repeat(part, { min: 0, max: OPEN_REPEATS_MAX, length: 1 })
    if (char === '+') return this.#repeat(part, { min: 1, max: OPEN_REPEATS_MAX, length: 1 })
    if (char !== '{') return part
    const count = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#text.slice(this.#at))
    if (count === null) throw new PatternError('"{" repeats by {n}, {n,} or {n,m}; write \\{ for itself')
    const min = Number(count[1])
    const max = count[2] === undefined ? min : count[3] === '' ? min + OPEN_REPEATS_MAX : Number(count[3])
    if (max < min || max > REPEATS_MAX)
      throw new PatternError(`"${count[0]}": counts go up, and to ${REPEATS_MAX} at most`)
    return this.#repeat(part, { min, max, length: count[0].length })
  }

  #repeat(part: PatternNode, { min, max, length }: { min: number; max: number; length: number }): PatternNode {
    this.#at += length
    // A `?` behind a repetition asks for the shortest match; the longest is the one that leaves nothing.
    if (this.#text[this.#at] === '?') this.#at++
    const next = this.#text[this.#at]
    if (next !== undefined && '*+{'.includes(next))
      throw new PatternError(`"${next}" at ${this.#at} repeats a repetition`)
    return { kind: 'repeat', part, min, max }
  }
}

const one = (char: string): UnitRanges => [[char.charCodeAt(0), char.charCodeAt(0)]]

const bothCases = (ranges: UnitRanges): UnitRanges => {
  const all = [...ranges]
  for (const [from, to] of ranges)
    for (let unit = Math.max(from, 0x41); unit <= Math.min(to, 0x7a); unit++)
      if (/[a-z]/i.test(String.fromCharCode(unit))) all.push([unit ^ 0x20, unit ^ 0x20])
  return all
}

const lengthsOf = (node: PatternNode): { min: number; max: number } => {
  if (node.kind === 'units') return { min: 1, max: 1 }
  if (node.kind === 'word-edge') return { min: 0, max: 0 }
  if (node.kind === 'repeat') {
    const { min, max } = lengthsOf(node.part)
    return { min: min * node.min, max: max * node.max }
  }
  const parts = node.parts.map(lengthsOf)
  if (node.kind === 'all')
    return parts.reduce((sum, { min, max }) => ({ min: sum.min + min, max: sum.max + max }), { min: 0, max: 0 })
  return { min: Math.min(...parts.map(({ min }) => min)), max: Math.max(...parts.map(({ max }) => max)) }
}

/** Reads an expression; throws a `PatternError` that says what to write instead. */
export const parsePattern = (expression: string): PatternNode => {
  if (expression.length > EXPRESSION_UNITS_MAX)
    throw new PatternError(`the expression has ${expression.length} characters; ${EXPRESSION_UNITS_MAX} at most`)
  const node = new PatternReader(expression).read()
  const { min, max } = lengthsOf(node)
  if (min === 0) throw new PatternError('the expression also matches nothing at all')
  if (max > MATCH_UNITS_MAX)
    throw new PatternError(
      `a match may have ${max} characters, and ${MATCH_UNITS_MAX} at most: bound repetitions, as in {1,8}`,
    )
  return node
}
