import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadProfile } from '../../../src/assembly/fs-profiles.ts'
import { Rng } from '../../../src/base/rng.ts'
import type { PoolSpeed } from '../../../src/domain/engine-speed.ts'
import type { ProfileJson } from '../../../src/engine/calibration/profile-json.ts'
import { limitsOf, type RooflineCoefficients, servingCoefficients } from '../../../src/engine/gpu-profile.ts'
import { gpuProfileNames } from '../../../src/engine/gpu-profiles.ts'
import { speedOfEngine } from '../../../src/engine/pool-speed.ts'
import { COST_DEFAULTS } from '../../../src/policy/planning/cost.ts'

/**
 * Engines that nobody built: step times drawn at random, by the logarithm, from ranges that hold everything from a small
 * model on a fast GPU to a large one on a slow GPU, with hosts and kernels that may be slow too. One that comes near a
 * built-in profile is drawn again: the twin's priors are the built-in ones, and must not contain the answer.
 */
type Range = readonly [from: number, to: number]

const RANGES: Readonly<Record<Exclude<keyof RooflineCoefficients, 'kind'>, Range>> = {
  weightsUs: [2_500, 30_000],
  computeUsPerToken: [8, 150],
  kneeSharpness: [1.2, 4],
  lmHeadUs: [50, 800],
  decodeBaseUs: [200, 3_000],
  kvReadUsPerToken: [0.008, 0.15],
  contextUsPerToken: [0.001, 0.3],
  decodeUsPerSequence: [1, 60],
  prefillBaseUs: [300, 6_000],
  attentionUsPerPair: [0.0003, 0.008],
  contextAttentionUsPerPair: [0.0003, 0.016],
  allReduceBaseUs: [1, 1_500],
  allReduceUsPerToken: [0.1, 20],
  hostUs: [10, 6_000],
  prefillFloorUs: [1, 50_000],
  prefillFloorSharpness: [2, 5],
  decodeFloorUs: [1, 10_000],
}

/** Whose memory they have: of a small, a middling and a large GPU. */
const LIKE = ['a100-llama-8b', 'h100-llama-8b', 'h200-llama-8b', 'h200-llama-70b-tp4']
const DRAWS_MAX = 1_000
/** Off by this factor in at least one of the looks, from each built-in profile. */
const APART_FACTOR = 1.4

export function drawProfiles(count: number, seed: number, folder: string): string[] {
  const rng = Rng.stream(seed, 'engines')
  const known = gpuProfileNames().map((name) => looksOf(speedOf(name)))
  const paths: string[] = []
  for (let draws = 0; paths.length < count; draws++) {
    if (draws > DRAWS_MAX) throw new Error(`${draws} engines were drawn, and nearly all are like a built-in one`)
    const name = `drawn-${paths.length + 1}`
    const path = join(folder, `${name}.json`)
    writeFileSync(path, JSON.stringify(draw(name, rng)))
    const looks = looksOf(speedOf(path))
    if (known.every((other) => isApart(looks, other))) paths.push(path)
  }
  return paths
}

function draw(name: string, rng: Rng): ProfileJson {
  const between = ([from, to]: Range): number => from * (to / from) ** rng.next()
  const terms = Object.entries(RANGES).map(([term, range]) => [term, between(range)])
  const coefficients = { kind: 'roofline', ...Object.fromEntries(terms) } as RooflineCoefficients
  return { name, like: LIKE[rng.below(LIKE.length)]!, source: 'drawn at random', coefficients }
}

export function speedOf(nameOrPath: string): PoolSpeed {
  const profile = loadProfile(nameOrPath)
  const options = { coefficients: servingCoefficients(profile), limits: limitsOf(profile) }
  return speedOfEngine(options, COST_DEFAULTS.outputWeight)
}

/** Microseconds of steps and first tokens as a chat has them. */
function looksOf({ alone, steps }: PoolSpeed): number[] {
  const step = (sequences: number, promptTokens: number): number =>
    steps?.meanTokenUs(sequences, 1_200 * sequences, promptTokens) ?? 0
  return [
    step(1, 0),
    step(32, 160),
    step(128, 640),
    alone.prefillUs(100, 0),
    alone.prefillUs(1_000, 0),
    alone.prefillUs(3_000, 0),
  ]
}

function isApart(one: readonly number[], other: readonly number[]): boolean {
  return one.some((us, i) => Math.abs(Math.log(us / other[i]!)) > Math.log(APART_FACTOR))
}
