import type { Rng } from '../../base/rng.ts'
import type { Arrivals, Lengths, RatePhase } from '../scenario/scenario.ts'

/** Lengths and gaps, drawn from named random streams. */

export function drawTokens(lengths: Lengths, rng: Rng): number {
  switch (lengths.kind) {
    case 'fixed':
      return lengths.tokens
    case 'uniform':
      return lengths.min + rng.below(lengths.max - lengths.min + 1)
    case 'quantiles':
      return atQuantile(lengths.points, rng.next())
  }
}

function atQuantile(points: ReadonlyArray<readonly number[]>, quantile: number): number {
  for (let i = 1; i < points.length; i++) {
    const [q0 = 0, t0 = 1] = points[i - 1] ?? []
    const [q1 = 1, t1 = 1] = points[i] ?? []
    if (quantile <= q1) return Math.max(1, Math.round(t0 + ((quantile - q0) / Math.max(1e-9, q1 - q0)) * (t1 - t0)))
  }
  return points.at(-1)?.[1] ?? 1
}

/** A gap with mean 1, to be divided by the present rate. */
export function drawUnitGap(arrivals: Exclude<Arrivals, { kind: 'closed' }>, rng: Rng): number {
  switch (arrivals.kind) {
    case 'poisson':
      return drawExponential(rng)
    case 'gamma': {
      const shape = 1 / (arrivals.cv * arrivals.cv)
      return drawGamma(shape, rng) / shape
    }
    case 'weibull': {
      const scale = 1 / gammaOf(1 + 1 / arrivals.shape)
      return scale * drawExponential(rng) ** (1 / arrivals.shape)
    }
  }
}

export function drawExponential(rng: Rng): number {
  return -Math.log(1 - rng.next())
}

/** Marsaglia and Tsang (2000); for shapes below one, boosted by a power of a uniform. */
function drawGamma(shape: number, rng: Rng): number {
  if (shape < 1) return drawGamma(shape + 1, rng) * (1 - rng.next()) ** (1 / shape)
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = drawNormal(rng)
    const v = (1 + c * x) ** 3
    if (v <= 0) continue
    const u = 1 - rng.next()
    if (Math.log(u) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v
  }
}

/** Box and Muller. */
export function drawNormal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next())
}

/** Lanczos' approximation, good to ten digits in the range used here. */
function gammaOf(z: number): number {
  const g = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
    -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
  ]
  const x = z - 1
  let sum = 0.9999999999998099
  for (let i = 0; i < g.length; i++) sum += g[i]! / (x + i + 1)
  const t = x + 7.5
  return Math.sqrt(2 * Math.PI) * t ** (x + 0.5) * Math.exp(-t) * sum
}

/** The factor of the rate at this second. */
export function factorAt(phases: readonly RatePhase[] | undefined, atS: number): number {
  let factor = 1
  for (const phase of phases ?? []) {
    if (atS < phase.fromS || atS >= phase.toS) continue
    const progress = (atS - phase.fromS) / Math.max(1e-9, phase.toS - phase.fromS)
    factor *= phase.toFactor === undefined ? phase.factor : phase.factor + (phase.toFactor - phase.factor) * progress
  }
  return factor
}
