/** The value below which the share `ratio` of all lies, interpolated between neighbours. */
export function quantile(values: readonly number[], ratio: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * ratio
  const below = sorted[Math.floor(at)] as number
  const above = sorted[Math.ceil(at)] as number
  return below + (above - below) * (at - Math.floor(at))
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
