import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { testTree } from '../../test/support/start-platform.ts'
import { buildConfig } from '../config/load.ts'
import { parseProfile } from '../engine/calibration/profile-json.ts'
import { type GpuProfile, limitsOf, servingCoefficients } from '../engine/gpu-profile.ts'
import { gpuProfileNames } from '../engine/gpu-profiles.ts'
import { speedOfEngine } from '../engine/pool-speed.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { speedOfPrior } from '../policy/twin/speed-of-prior.ts'
import { priorOf, type TwinPrior } from '../policy/twin/twin-prior.ts'
import { engineOptionsOf } from './engine-options.ts'
import { learnedProfileOf } from './learned-profile.ts'

const CONFIG = buildConfig({ path: 'test.yaml', tree: testTree(), lineOf: () => undefined }, {})

/** The reference documents' A100 has a decode rate that grows with the root of the batch, which no twin learns. */
const NAMES = gpuProfileNames().filter((name) => !name.startsWith('reference'))

/** What a twin would have learned of an engine with this profile, in the end. */
function learnedOf(name: string): TwinPrior {
  const { alone, steps } = speedOfEngine(engineOptionsOf(CONFIG, name), COST_DEFAULTS.outputWeight)
  return priorOf(name, { alone, steps: steps! })
}

/** Through the file and back, as an engine is made from it. */
function written(twin: TwinPrior, kvTokensMax?: number) {
  const { profile } = learnedProfileOf({ ...twin, id: 'r0', prior: twin.name, rows: 100, kvTokensMax })
  const parsed = parseProfile(JSON.stringify(profile)) as GpuProfile
  expect(parsed).not.toHaveProperty('kind')
  const options = { coefficients: servingCoefficients(parsed), limits: limitsOf(parsed) }
  return { profile, options, speed: speedOfEngine(options, COST_DEFAULTS.outputWeight) }
}

const STEPS: ReadonlyArray<readonly [number, number, number]> = [
  [1, 200, 0],
  [4, 4_000, 0],
  [24, 36_000, 0],
  [64, 64_000, 0],
  [64, 64_000, 200],
  [100, 100_000, 400],
]
const PROMPTS: ReadonlyArray<readonly [number, number]> = [
  [20, 0],
  [1_000, 0],
  [2_000, 0],
  [3_000, 0],
  [8_000, 0],
  [1_000, 1_000],
]

function errorsOf(twin: TwinPrior): number[] {
  const known = speedOfPrior(twin)
  const { alone, steps } = written(twin).speed
  return [
    ...STEPS.map((load) => steps!.meanTokenUs(...load) / known.meanTokenUs(...load) - 1),
    ...PROMPTS.map((prompt) => alone.prefillUs(...prompt) / known.prefillUs(...prompt) - 1),
  ].map(Math.abs)
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

describe('a profile written from what was learned', () => {
  it.each(NAMES)('says what the twin says, of an engine that is %s', (name) => {
    const errors = errorsOf(learnedOf(name))
    expect(meanOf(errors)).toBeLessThan(0.04)
    expect(Math.max(...errors)).toBeLessThan(0.1)
  })

  it('says nearly what the twin says of engines that are no profile', () => {
    // Each coefficient by itself: what is learned has errors, and no engine is quite like another.
    const factor = fc.double({ min: 0.8, max: 1.25, noNaN: true })
    const factors = fc.tuple(factor, factor, factor, factor)
    const scaled = (by: readonly number[], coefficients: readonly number[]) => coefficients.map((c, i) => c * by[i]!)
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), factors, factors, (name, decode, read) => {
        const known = learnedOf(name)
        const twin = { ...known, decode: scaled(decode, known.decode), read: scaled(read, known.read) }
        expect(meanOf(errorsOf(twin))).toBeLessThan(0.1)
      }),
      { numRuns: 60 },
    )
  })

  it('keeps the memory that the engine has, and the GPU that it is like', () => {
    const twin = { ...learnedOf('a100-llama-70b-tp4'), name: 'a100-llama-70b-tp4, as another replica' }
    const { profile, options } = written(twin, 123_456)
    expect(profile).toMatchObject({ name: 'learned-r0', like: 'a100-llama-70b-tp4', kvTokensMax: 123_456 })
    expect(options.limits.blockCount * options.limits.blockTokens).toBe(123_456)
    expect(written({ ...twin, name: 'cautious' }).profile.like).toBe('h100-llama-8b')
  })

  it.each([0, -5, Number.NaN, 'many'])('with a memory of %s is refused', (kvTokensMax) => {
    const { profile } = written(learnedOf('h100-llama-8b'))
    const parsed = parseProfile(JSON.stringify({ ...profile, kvTokensMax: kvTokensMax === 0 ? 0 : kvTokensMax }))
    expect(parsed).toMatchObject({ kind: 'bad-profile', because: expect.stringContaining('kvTokensMax') as string })
  })
})
