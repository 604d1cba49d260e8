import { assert } from '../../base/assert.ts'

/**
 * How do whole units of money fall to parties with fractional claims, so that nothing is lost or made?
 *
 * Largest remainder (Hamilton's method): each gets its claim rounded down, and the units that are left go to those whose
 * claims lost most by the rounding. No party is more than one unit off its claim. Ties go to the first.
 *
 * Example: 10 units by claims 1 : 1 : 1 are 4, 3, 3.
 */
export function splitExactly(total: number, weights: readonly number[]): number[] {
  assert(Number.isSafeInteger(total) && total >= 0, 'money is split in whole units')
  let sum = 0
  for (const weight of weights) {
    assert(weight >= 0 && Number.isFinite(weight), 'a claim is not negative')
    sum += weight
  }
  const parts = weights.map((weight) => (sum > 0 ? Math.floor(total * (weight / sum)) : 0))
  if (sum === 0) return parts
  let left = total
  for (const part of parts) left -= part
  if (left === 0) return parts
  const lost = weights.map((weight, i) => total * (weight / sum) - (parts[i] as number))
  const byLoss = weights.map((_, i) => i).sort((a, b) => (lost[b] as number) - (lost[a] as number) || a - b)
  // Less than one unit for each is left; a rounded product may have given one too many, which the last in line gives back.
  const step = left > 0 ? 1 : -1
  const order = left > 0 ? byLoss : byLoss.reverse().filter((i) => (parts[i] as number) > 0)
  for (let i = 0; left !== 0; i = (i + 1) % order.length) {
    parts[order[i] as number] = (parts[order[i] as number] as number) + step
    left -= step
  }
  return parts
}
