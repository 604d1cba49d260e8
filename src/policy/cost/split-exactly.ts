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
  const parts = Array.from(weights, () => 0)
  if (sum === 0) return parts
  let left = total
  const lost = new Float64Array(weights.length)
  for (let i = 0; i < weights.length; i++) {
    const claim = total * ((weights[i] as number) / sum)
    const part = Math.floor(claim)
    parts[i] = part
    lost[i] = claim - part
    left -= part
  }
  if (left !== 0) giveRest(parts, lost, left)
  return parts
}

/**
 * Less than one unit for each is left. A rounded product may have given one too many: then those who lost least give back.
 */
function giveRest(parts: number[], lost: Float64Array, left: number): void {
  const sign = left > 0 ? 1 : -1
  const sorted = lost.toSorted()
  const count = Math.min(Math.abs(left), parts.length)
  const bound = sorted[sign > 0 ? sorted.length - count : count - 1] as number
  let rest = Math.abs(left)
  const give = (i: number): void => {
    if (rest === 0 || (parts[i] as number) + sign < 0) return
    parts[i] = (parts[i] as number) + sign
    rest--
  }
  for (let i = 0; i < parts.length; i++) if (sign * ((lost[i] as number) - bound) > 0) give(i)
  for (let i = 0; i < parts.length; i++) if (lost[i] === bound) give(i)
  // Only where rounding made the rest larger than the number of claims, or the first in line had nothing to give back.
  for (let i = 0; rest > 0; i = (i + 1) % parts.length) give(i)
}
