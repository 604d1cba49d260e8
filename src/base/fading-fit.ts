import { assert } from './assert.ts'

/**
 * Which non-negative coefficients explain what was seen lately?
 *
 * Least squares of `y ≈ Σ coefficient · x`, in relative terms: an error of a tenth counts the same for a short time as for
 * a long one. Three things make it fit for measurements of a running system:
 *
 *   - it forgets: `fade` takes weight from everything that was seen;
 *   - it is robust: a row that is off by more than `clipRatio` pulls no harder than one that is off by that much (Huber,
 *     1964);
 *   - it has a prior: each coefficient that deviates from its prior by a tenth costs as much as `priorRows` rows that are
 *     off by a tenth. Where rows say nothing about a coefficient, the prior decides; ridge regression towards a point
 *     other than zero (Hoerl and Kennard, 1970).
 *
 * A coefficient that would come out negative is left out, and the others are fitted without it.
 *
 * Memory and time: K coefficients take K² numbers, and a solution K³ operations, made when it is asked for.
 * Example: prior 6 ms and 0.1 ms a sequence; rows of 8 ms with 20 sequences and 12 ms with 60 give 6 and 0.1 again; a
 * thousand rows each of 16 and 24 ms give 12 and 0.2, within a few percent. Their sums are right after a hundred.
 */
export interface FadingFitOptions {
  readonly priorRows: number
  /** Relative error from which a row counts less. */
  readonly clipRatio: number
}

export class FadingFit {
  readonly #options: FadingFitOptions
  readonly #count: number
  #prior: readonly number[]
  /** Σ w·x·xᵀ and Σ w·x·y, both divided by y times what was expected of it. */
  readonly #squares: Float64Array
  readonly #products: Float64Array
  #weight = 0
  #solution: readonly number[] | undefined

  constructor(prior: readonly number[], options: FadingFitOptions) {
    this.#options = options
    this.#count = prior.length
    this.#prior = checked(prior)
    this.#squares = new Float64Array(this.#count * this.#count)
    this.#products = new Float64Array(this.#count)
  }

  /** Rows that it remembers, by what is left of their weight. */
  get weight(): number {
    return this.#weight
  }

  get prior(): readonly number[] {
    return this.#prior
  }

  setPrior(prior: readonly number[]): void {
    assert(prior.length === this.#count, 'a prior has a value for each coefficient')
    this.#prior = checked(prior)
    this.#solution = undefined
  }

  /** What was seen so far keeps this share of its weight. */
  fade(keep: number): void {
    if (keep >= 1) return
    for (let i = 0; i < this.#squares.length; i++) this.#squares[i]! *= keep
    for (let i = 0; i < this.#count; i++) this.#products[i]! *= keep
    this.#weight *= keep
    this.#solution = undefined
  }

  predict(x: readonly number[]): number {
    const coefficients = this.coefficients()
    let y = 0
    for (let i = 0; i < this.#count; i++) y += coefficients[i]! * x[i]!
    return y
  }

  /** Returns how far the row was from what was expected of it, y ÷ expected; a row that says nothing is as expected. */
  observe(x: readonly number[], y: number, weight = 1): number {
    const expected = this.predict(x)
    // A term without end would make every sum no number, for good.
    if (!(y > 0) || !Number.isFinite(y) || !(expected > 0) || !Number.isFinite(expected)) return 1
    const ratio = y / expected
    // Off by a factor, whichever way: a row twice as long is as surprising as one half as long.
    const off = Math.max(ratio, 1 / ratio) - 1
    const clipped = off <= this.#options.clipRatio ? weight : (weight * this.#options.clipRatio) / off
    // Relative to the geometric mean of both: by `y` alone, one row that came at once would outweigh a thousand.
    const perSquare = clipped / (y * expected)
    for (let i = 0; i < this.#count; i++) {
      const scaled = perSquare * x[i]!
      for (let j = 0; j < this.#count; j++) this.#squares[i * this.#count + j]! += scaled * x[j]!
      this.#products[i]! += scaled * y
    }
    this.#weight += clipped
    this.#solution = undefined
    return ratio
  }

  coefficients(): readonly number[] {
    this.#solution ??= this.#solve()
    return this.#solution
  }

  #solve(): readonly number[] {
    const isUsed = Array.from({ length: this.#count }, () => true)
    for (let round = 0; round <= this.#count; round++) {
      const solution = this.#solveFor(isUsed)
      const negative = solution.findIndex((coefficient, i) => isUsed[i] === true && coefficient < 0)
      if (negative < 0) return solution
      isUsed[negative] = false
    }
    return this.#prior
  }

  /** Gaussian elimination of the coefficients in use; the matrix is positive definite, so no pivots are searched. */
  #solveFor(isUsed: readonly boolean[]): number[] {
    const n = this.#count
    const matrix = Array.from(this.#squares)
    const right = Array.from(this.#products)
    for (let i = 0; i < n; i++) {
      const prior = this.#prior[i]!
      const stiffness = this.#options.priorRows / (prior * prior)
      matrix[i * n + i]! += stiffness
      right[i]! += stiffness * prior
      if (isUsed[i] === true) continue
      for (let j = 0; j < n; j++) {
        matrix[i * n + j] = 0
        matrix[j * n + i] = 0
      }
      matrix[i * n + i] = 1
      right[i] = 0
    }
    for (let i = 0; i < n; i++) {
      for (let row = i + 1; row < n; row++) {
        const factor = matrix[row * n + i]! / matrix[i * n + i]!
        if (factor === 0) continue
        for (let j = i; j < n; j++) matrix[row * n + j]! -= factor * matrix[i * n + j]!
        right[row]! -= factor * right[i]!
      }
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let j = i + 1; j < n; j++) right[i]! -= matrix[i * n + j]! * right[j]!
      right[i]! /= matrix[i * n + i]!
    }
    return right
  }
}

/** A prior's own size is the scale of what deviates from it, so zero is none. */
function checked(prior: readonly number[]): readonly number[] {
  for (const value of prior) assert(value > 0 && Number.isFinite(value), 'a prior is above zero')
  return prior
}
