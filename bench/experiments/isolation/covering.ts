import { Rng } from '../../../src/base/rng.ts'

/** A design: for each dimension the number of its values, and rows of one value each. */
export type Row = readonly number[]

/** Candidates for each row: the best of this many random ones, finished greedily, is taken. */
const CANDIDATES = 30

/**
 * Rows in which every pair of values of two dimensions occurs at least `times` times (a covering array of strength two,
 * built greedily as AETG does: D. Cohen et al., 1997). A defect that needs two circumstances together is met by such a
 * design; all combinations of the grid would be hundreds of times as many.
 */
export function coveringRows(sizes: readonly number[], times: number, seed: number): Row[] {
  const rng = Rng.stream(seed, 'covering')
  const open = new OpenPairs(sizes, times)
  const rows: Row[] = []
  while (open.count > 0) {
    let best: Row = []
    let bestGain = 0
    for (let i = 0; i < CANDIDATES; i++) {
      const row = candidateOf(sizes, open, rng)
      const gain = open.gainOf(row)
      if (gain > bestGain) [best, bestGain] = [row, gain]
    }
    open.take(best)
    rows.push(best)
  }
  return rows
}

/** Begins with a pair that is still open; the other dimensions, in random order, take the value that gains most. */
function candidateOf(sizes: readonly number[], open: OpenPairs, rng: Rng): Row {
  const row: Array<number | undefined> = sizes.map(() => undefined)
  const first = open.draw(rng)
  row[first.a] = first.x
  row[first.b] = first.y
  for (const dimension of shuffled(sizes.length, rng)) {
    if (row[dimension] !== undefined) continue
    const offset = rng.below(sizes[dimension] as number)
    let bestGain = -1
    for (let i = 0; i < (sizes[dimension] as number); i++) {
      const value = (i + offset) % (sizes[dimension] as number)
      const gain = open.gainWith(row, dimension, value)
      if (gain > bestGain) [row[dimension], bestGain] = [value, gain]
    }
  }
  return row as number[]
}

/** Pairs of values that are not covered as often as wanted. */
class OpenPairs {
  readonly #left = new Map<string, number>()
  readonly #sizes: readonly number[]

  constructor(sizes: readonly number[], times: number) {
    this.#sizes = sizes
    for (let a = 0; a < sizes.length; a++)
      for (let b = a + 1; b < sizes.length; b++)
        for (let x = 0; x < (sizes[a] as number); x++)
          for (let y = 0; y < (sizes[b] as number); y++) this.#left.set(nameOf(a, x, b, y), times)
  }

  get count(): number {
    return this.#left.size
  }

  draw(rng: Rng): { a: number; x: number; b: number; y: number } {
    const names = [...this.#left.keys()]
    const [a = 0, x = 0, b = 0, y = 0] = (names[rng.below(names.length)] as string).split(' ').map(Number)
    return { a, x, b, y }
  }

  gainWith(row: ReadonlyArray<number | undefined>, dimension: number, value: number): number {
    let gain = 0
    for (const [other, set] of row.entries())
      if (set !== undefined && other !== dimension && this.#left.has(pairName(dimension, value, other, set))) gain++
    return gain
  }

  gainOf(row: Row): number {
    return pairsOf(row).filter((name) => this.#left.has(name)).length
  }

  take(row: Row): void {
    if (row.length !== this.#sizes.length) throw new Error('a row has a value for each dimension')
    for (const name of pairsOf(row)) {
      const left = (this.#left.get(name) ?? 1) - 1
      if (left > 0) this.#left.set(name, left)
      else this.#left.delete(name)
    }
  }
}

/** Names of all pairs of values in a row. */
export function pairsOf(row: Row): string[] {
  return row.flatMap((x, a) => row.slice(a + 1).map((y, i) => nameOf(a, x, a + 1 + i, y)))
}

const nameOf = (a: number, x: number, b: number, y: number): string => `${a} ${x} ${b} ${y}`

const pairName = (a: number, x: number, b: number, y: number): string =>
  a < b ? nameOf(a, x, b, y) : nameOf(b, y, a, x)

function shuffled(length: number, rng: Rng): number[] {
  const order = Array.from({ length }, (_, i) => i)
  for (let i = length - 1; i > 0; i--) {
    const j = rng.below(i + 1)
    ;[order[i], order[j]] = [order[j] as number, order[i] as number]
  }
  return order
}
