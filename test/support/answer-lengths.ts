import type { Lengths } from '../../src/sim/scenario/scenario.ts'

/**
 * How long are the answers in the experiments on fairness? 256 tokens on average each time. `log-normal` has σ = 0.8 and
 * is given by its quantiles, so that it is the same on every processor. Of `unequal-spread`, every other tenant's
 * answers are alike and the next one's are log-normal.
 */
export const LENGTH_NAMES = ['fixed', 'uniform', 'log-normal', 'unequal-spread'] as const
export type LengthName = (typeof LENGTH_NAMES)[number]

export const MEAN_TOKENS = 256

const FIXED: Lengths = { kind: 'fixed', tokens: MEAN_TOKENS }
const UNIFORM: Lengths = { kind: 'uniform', min: 32, max: 480 }
const LOG_NORMAL: Lengths = {
  kind: 'quantiles',
  points: [
    [0, 16],
    [0.01, 29],
    [0.05, 50],
    [0.1, 67],
    [0.25, 108],
    [0.5, 186],
    [0.75, 319],
    [0.9, 518],
    [0.95, 693],
    [0.99, 1_196],
    [1, 2_000],
  ],
}

export function lengthsOf(name: LengthName, who: number): Lengths {
  if (name === 'fixed') return FIXED
  if (name === 'uniform') return UNIFORM
  return name === 'log-normal' || who % 2 === 1 ? LOG_NORMAL : FIXED
}
