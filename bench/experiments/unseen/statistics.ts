/** Means over seeds with their 95 % confidence intervals, by Student's t. */
export interface Interval {
  readonly mean: number
  /** Half of the interval's width; undefined with one value. */
  readonly halfWidth: number | undefined
}

/** 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom. */
const T = [
  12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
]
const T_FAR = 1.96

export function intervalOf(values: readonly number[]): Interval {
  const count = values.length
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  if (count < 2) return { mean, halfWidth: undefined }
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, halfWidth: (T[count - 2] ?? T_FAR) * Math.sqrt(squares / (count - 1) / count) }
}

/** Of the differences seed by seed: what seeds have in common cancels out. */
export function pairedInterval(values: readonly number[], base: readonly number[]): Interval {
  return intervalOf(values.map((value, index) => value - (base[index] as number)))
}

export function shownInterval({ mean, halfWidth }: Interval, digits: number, isSigned = false): string {
  const sign = isSigned && Number(mean.toFixed(digits)) > 0 ? '+' : ''
  const text = `${sign}${mean.toFixed(digits).replace(/^-(0(?:\.0*)?)$/, '$1')}`
  return halfWidth === undefined ? text : `${text} ±${halfWidth.toFixed(digits)}`
}

export interface Sharing {
  /** Jain's index of what tenants got of their fair shares. */
  readonly jain: number
  /** Largest part of its fair share that a tenant did not get, in percent. */
  readonly gapMax: number
}

/**
 * How evenly was the work shared? What was served in all is shared out anew: equal parts, but to no tenant more than it
 * asked for. Each tenant's part of that fair share counts, at most 1.
 */
export function sharingOf(tenants: ReadonlyArray<{ readonly asked: number; readonly served: number }>): Sharing {
  const asking = tenants.filter(({ asked }) => asked > 0).sort((a, b) => a.asked - b.asked)
  let left = asking.reduce((sum, { served }) => sum + served, 0)
  const got = asking.map(({ asked, served }, index) => {
    const fair = Math.min(asked, left / (asking.length - index))
    left -= fair
    return fair > 0 ? Math.min(1, served / fair) : 1
  })
  const sum = got.reduce((a, b) => a + b, 0)
  const squares = got.reduce((a, b) => a + b * b, 0)
  if (squares === 0) return { jain: 1, gapMax: 0 }
  return { jain: (sum * sum) / (got.length * squares), gapMax: 100 * (1 - Math.min(...got)) }
}
