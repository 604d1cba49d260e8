/**
 * Which parameters bring the residuals closest to zero?
 *
 * Levenberg–Marquardt: Gauss–Newton on the linearised residuals, with a damping that grows until a step helps and
 * shrinks when it does. Derivatives by forward difference; normal equations by Gaussian elimination. Our problems have
 * ten parameters and a few hundred rows, so nothing here is clever.
 *
 * The caller sees to scale: parameters should be of the order of one (we give logarithms, which keeps them positive).
 */
const ITERATIONS_MAX = 200
const DIFFERENCE = 1e-6
const DAMPING_START = 1e-3
/** Beyond this no step helps any more: the minimum is reached as far as numbers go. */
const DAMPING_MAX = 1e12

export function fitLeastSquares(
  start: readonly number[],
  residualsOf: (parameters: readonly number[]) => readonly number[],
): readonly number[] {
  let best = start
  let residuals = residualsOf(best)
  let cost = sumOfSquares(residuals)
  let damping = DAMPING_START
  for (let iteration = 0; iteration < ITERATIONS_MAX && damping < DAMPING_MAX; iteration++) {
    const { matrix, gradient } = normalEquations(best, residuals, residualsOf)
    const costBefore = cost
    while (damping < DAMPING_MAX) {
      const step = solve(dampened(matrix, damping), gradient)
      const next = best.map((value, i) => value - (step[i] as number))
      const nextResiduals = residualsOf(next)
      const nextCost = sumOfSquares(nextResiduals)
      if (nextCost < cost) {
        best = next
        residuals = nextResiduals
        cost = nextCost
        damping /= 3
        break
      }
      damping *= 4
    }
    if (costBefore - cost < costBefore * 1e-10) break
  }
  return best
}

function sumOfSquares(values: readonly number[]): number {
  let sum = 0
  for (const value of values) sum += value * value
  return Number.isFinite(sum) ? sum : Number.POSITIVE_INFINITY
}

interface NormalEquations {
  readonly matrix: readonly number[][]
  readonly gradient: readonly number[]
}

function normalEquations(
  at: readonly number[],
  residuals: readonly number[],
  residualsOf: (parameters: readonly number[]) => readonly number[],
): NormalEquations {
  const columns = at.map((value, i) => {
    const moved = residualsOf(at.with(i, value + DIFFERENCE))
    return moved.map((residual, row) => (residual - (residuals[row] as number)) / DIFFERENCE)
  })
  return {
    matrix: columns.map((a) => columns.map((b) => dot(a, b))),
    gradient: columns.map((column) => dot(column, residuals)),
  }
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number)
  return sum
}

/** A parameter that no row depends on has a zero on the diagonal; the small constant keeps it where it is. */
function dampened(matrix: readonly number[][], damping: number): number[][] {
  return matrix.map((row, i) => row.with(i, (row[i] as number) * (1 + damping) + 1e-12))
}

/** Gaussian elimination with pivoting. */
function solve(matrix: number[][], right: readonly number[]): number[] {
  const rows = matrix.map((row, i) => [...row, right[i] as number])
  const size = rows.length
  for (let column = 0; column < size; column++) {
    let pivot = column
    for (let r = column + 1; r < size; r++)
      if (Math.abs(at(rows, r, column)) > Math.abs(at(rows, pivot, column))) pivot = r
    ;[rows[column], rows[pivot]] = [rows[pivot] as number[], rows[column] as number[]]
    for (let r = column + 1; r < size; r++) {
      const factor = at(rows, r, column) / at(rows, column, column)
      for (let i = column; i <= size; i++) (rows[r] as number[])[i] = at(rows, r, i) - factor * at(rows, column, i)
    }
  }
  const solution = rows.map(() => 0)
  for (let r = size - 1; r >= 0; r--) {
    let value = at(rows, r, size)
    for (let i = r + 1; i < size; i++) value -= at(rows, r, i) * (solution[i] as number)
    solution[r] = value / at(rows, r, r)
  }
  return solution
}

function at(rows: readonly number[][], row: number, column: number): number {
  return (rows[row] as number[])[column] as number
}
