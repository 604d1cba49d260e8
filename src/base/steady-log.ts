/**
 * Logarithm and power to the base of two, from sums, products and quotients alone. Those are the same bit for bit on
 * every processor and in every version of the runtime, which `Math.log2` and `**` need not be; journals of one seed must
 * be (see base/ewma.ts).
 *
 * A factor of two is taken out until the rest is near 1; the rest is summed by the series of atanh and of e^x. Errors are
 * below 1e-9 between 2^-64 and 2^64: measured times are far less exact.
 */

/** The logarithm of a number that is above zero and finite. */
export function steadyLog2(value: number): number {
  let rest = value
  let whole = 0
  for (; rest > Math.SQRT2; rest /= 2) whole++
  for (; rest < Math.SQRT2 / 2; rest *= 2) whole--
  const s = (rest - 1) / (rest + 1)
  const square = s * s
  const series = 1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square / 11))))
  return whole + (2 * s * series) / Math.LN2
}

export function steadyPow2(exponent: number): number {
  const whole = Math.round(exponent)
  const x = (exponent - whole) * Math.LN2
  let power = 1
  for (let n = 10; n >= 1; n--) power = 1 + (x * power) / n
  for (let i = 0; i < Math.abs(whole); i++) power = whole > 0 ? power * 2 : power / 2
  return power
}
