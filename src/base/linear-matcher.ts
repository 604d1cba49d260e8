import { PatternError, type PatternNode, parsePattern, type UnitRanges } from './pattern-syntax.ts'

/**
 * Where is the first place that one of several patterns matches?
 *
 * All patterns at once as one non-deterministic machine (Thompson, 1968): each unit of the text moves every live state one
 * step, and a state is live once, whatever the ways that lead to it. The time is the text's length times the machine's
 * size at worst; no expression can make it more. Of several matches the one that starts first counts, then the longest,
 * then the first pattern. A text that is not whole may leave places open, which are told, too.
 */

/** States of all patterns together at most. */
const STATES_MAX = 16_384

const UNITS = 0
const SPLIT = 1
const EDGE = 2
const MATCH = 3

/** Why expressions cannot be used together; undefined if they can. */
export const whyNotPatterns = (expressions: readonly string[]): string | undefined => {
  try {
    new LinearMatcher(expressions)
    return undefined
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

class UnitSet {
  readonly #ascii = new Uint8Array(128)
  readonly #others: UnitRanges

  constructor(ranges: UnitRanges) {
    for (const [from, to] of ranges) this.#ascii.fill(1, Math.min(from, 128), Math.min(to + 1, 128))
    this.#others = ranges.filter(([, to]) => to >= 128)
  }

  has(unit: number): boolean {
    if (unit < 128) return this.#ascii[unit] === 1
    return this.#others.some(([from, to]) => unit >= from && unit <= to)
  }
}

export class LinearMatcher {
  /** The last match, and which pattern it is of. */
  start = 0
  end = 0
  which = 0
  /** Where the first place starts that more text could make a match; the text's length if there is none. */
  openFrom = 0

  readonly #kinds: number[] = []
  /** First and second next state; of a match the pattern, of an edge whether it must be one. */
  readonly #next: number[] = []
  readonly #other: number[] = []
  readonly #sets: (UnitSet | undefined)[] = []
  readonly #firsts: number[]
  /** Units that a match may start with: most of a text is passed by a look at it. */
  readonly #canStart: UnitSet
  /** Live states, by the order of where they started, and where each started. */
  #live: Int32Array
  #liveNext: Int32Array
  readonly #startOf: Int32Array
  readonly #startOfNext: Int32Array
  readonly #mark: Int32Array
  #round = 0
  #count = 0

  constructor(expressions: readonly string[]) {
    const starts: UnitRanges[] = []
    this.#firsts = expressions.map((expression, which) => {
      const match = this.#add(MATCH, which, 0)
      const node = parsePattern(expression)
      starts.push(startsOf(node).ranges)
      return this.#compile(node, match)
    })
    this.#canStart = new UnitSet(starts.flat())
    const size = this.#kinds.length
    this.#live = new Int32Array(size)
    this.#liveNext = new Int32Array(size)
    this.#startOf = new Int32Array(size)
    this.#startOfNext = new Int32Array(size)
    this.#mark = new Int32Array(size)
  }

  #add(kind: number, next: number, other: number, set?: UnitSet): number {
    if (this.#kinds.length >= STATES_MAX) throw new PatternError('the expressions repeat too much together')
    this.#kinds.push(kind)
    this.#next.push(next)
    this.#other.push(other)
    this.#sets.push(set)
    return this.#kinds.length - 1
  }

  /** Builds a node backwards: its first state, given the state behind it. */
  #compile(node: PatternNode, then: number): number {
    if (node.kind === 'units') return this.#add(UNITS, then, 0, new UnitSet(node.ranges))
    if (node.kind === 'word-edge') return this.#add(EDGE, then, node.isEdge ? 1 : 0)
    if (node.kind === 'all') return node.parts.reduceRight((next, part) => this.#compile(part, next), then)
    if (node.kind === 'any') {
      const firsts = node.parts.map((part) => this.#compile(part, then))
      return firsts.reduceRight((rest, first) => this.#add(SPLIT, first, rest))
    }
    let next = then
    for (let i = 0; i < node.max; i++) {
      const first = this.#compile(node.part, next)
      // Optional rounds come last, and each may leave for what follows all of them.
      next = i < node.max - node.min ? this.#add(SPLIT, first, then) : first
    }
    return next
  }

  /** Finds the first match at or behind `from`. Texts that are not whole leave places at their end open. */
  find(text: string, { from, isWhole }: { from: number; isWhole: boolean }): boolean {
    this.#count = 0
    this.#edgeAtEnd = Number.POSITIVE_INFINITY
    this.start = -1
    this.openFrom = text.length
    for (let p = from; p <= text.length; p++) {
      if (this.#count === 0) while (p < text.length && !this.#canStart.has(text.charCodeAt(p))) p++
      this.#round++
      this.#step(text, p)
      if (this.start < 0 && p < text.length) for (const first of this.#firsts) this.#follow(text, p, first, p)
      this.#swap()
      if (p === text.length && !isWhole && this.#isOpen()) return false
      if (this.#count === 0 && this.start >= 0) return true
    }
    return this.start >= 0
  }

  /** Moves each live state over the unit before `p`. */
  #step(text: string, p: number): void {
    this.#added = 0
    if (this.#count === 0) return
    const unit = text.charCodeAt(p - 1)
    for (let i = 0; i < this.#count; i++) {
      const state = this.#live[i]!
      const start = this.#startOf[i]!
      if (this.start >= 0 && start > this.start) break
      if (this.#sets[state]!.has(unit)) this.#follow(text, p, this.#next[state]!, start)
    }
  }

  #added = 0

  /** Adds a state and all that it leads to without a unit. */
  #follow(text: string, p: number, state: number, start: number): void {
    if (this.#mark[state] === this.#round) return
    this.#mark[state] = this.#round
    const kind = this.#kinds[state]
    if (kind === UNITS) {
      this.#liveNext[this.#added] = state
      this.#startOfNext[this.#added++] = start
    } else if (kind === SPLIT) {
      this.#follow(text, p, this.#next[state]!, start)
      this.#follow(text, p, this.#other[state]!, start)
    } else if (kind === EDGE) {
      if (p === text.length) this.#edgeAtEnd = start < this.#edgeAtEnd ? start : this.#edgeAtEnd
      if (isWordEdge(text, p) === (this.#other[state] === 1)) this.#follow(text, p, this.#next[state]!, start)
    } else this.#take(start, p, this.#next[state]!)
  }

  /** Where the first place starts that needs to know what follows the end of the text. */
  #edgeAtEnd = Number.POSITIVE_INFINITY

  #take(start: number, end: number, which: number): void {
    if (this.start >= 0 && (start > this.start || (start === this.start && end <= this.end))) return
    this.start = start
    this.end = end
    this.which = which
  }

  #swap(): void {
    const live = this.#live
    this.#live = this.#liveNext
    this.#liveNext = live
    this.#startOf.set(this.#startOfNext.subarray(0, this.#added))
    this.#count = this.#added
  }

  /** Whether something at the text's end may still become a match that counts before the one that was found. */
  #isOpen(): boolean {
    let open = Math.min(this.#edgeAtEnd, this.start >= 0 ? this.start : Number.POSITIVE_INFINITY)
    let isOpen = this.#edgeAtEnd < Number.POSITIVE_INFINITY
    this.#edgeAtEnd = Number.POSITIVE_INFINITY
    for (let i = 0; i < this.#count; i++) {
      const start = this.#startOf[i]!
      if (this.start >= 0 && start > this.start) continue
      isOpen = true
      open = Math.min(open, start)
    }
    if (isOpen) this.openFrom = open
    return isOpen
  }
}

/** Units that a node may start with, and whether it may be nothing. */
const startsOf = (node: PatternNode): { ranges: UnitRanges; isEmpty: boolean } => {
  if (node.kind === 'units') return { ranges: node.ranges, isEmpty: false }
  if (node.kind === 'word-edge') return { ranges: [], isEmpty: true }
  if (node.kind === 'repeat') {
    const { ranges, isEmpty } = startsOf(node.part)
    return node.max === 0 ? { ranges: [], isEmpty: true } : { ranges, isEmpty: isEmpty || node.min === 0 }
  }
  const ranges: (readonly [number, number])[] = []
  let isEmpty = node.kind === 'all'
  for (const part of node.parts) {
    const starts = startsOf(part)
    ranges.push(...starts.ranges)
    if (node.kind === 'any') isEmpty = isEmpty || starts.isEmpty
    else if (!starts.isEmpty) return { ranges, isEmpty: false }
  }
  return { ranges, isEmpty }
}

const isWordEdge = (text: string, p: number): boolean => isWordUnitAt(text, p - 1) !== isWordUnitAt(text, p)

const isWordUnitAt = (text: string, p: number): boolean => /\w/.test(text.charAt(p))
