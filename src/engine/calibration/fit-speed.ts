import type { StepModel } from '../../domain/engine-speed.ts'
import type { RooflineCoefficients } from '../gpu-profile.ts'
import { IDLE_STEP } from '../mean-step.ts'
import { stepUs } from '../step-time.ts'
import { fitLeastSquares } from './least-squares.ts'

/**
 * Which profile behaves like an engine that is known only from outside?
 *
 * Somebody (a twin of the engine) answers two questions: how long is a mean step of this load, and how long does this
 * prompt take alone. The coefficients are those whose answers come nearest at ordinary loads, by relative error: a start
 * is read off the answers themselves, and least squares does the rest. The profile has a knee where the questioned one
 * may have straight lines, so between the points the two differ by what a knee differs from its chord.
 *
 * Example: 6 ms + 4 µs a sequence + 0.04 µs a context token, prompts 6.3 ms + 12 µs a token up to 1,024 and 17 beyond:
 * weights of 4.6 ms, 13 µs of compute a token beyond the knee at 350 tokens, and the rest in bases.
 */
export interface KnownSpeed {
  readonly tokenBudget: number
  readonly meanTokenUs: StepModel['meanTokenUs']
  readonly prefillUs: (uncachedTokens: number, cachedTokens: number) => number
}

/** Sequences, context tokens of each, prompt tokens a step. */
const STEP_POINTS: ReadonlyArray<readonly [number, number, number]> = [
  [1, 500, 0],
  [8, 1_000, 0],
  [32, 1_000, 0],
  [64, 1_000, 0],
  [96, 500, 0],
  [128, 1_000, 0],
  [32, 1_000, 160],
  [64, 1_000, 320],
  [96, 1_000, 480],
]
/** Uncached and cached tokens of prompts. */
const PROMPT_POINTS: ReadonlyArray<readonly [number, number]> = [
  [16, 0],
  [128, 0],
  [512, 0],
  [1_024, 0],
  [1_500, 0],
  [2_048, 0],
  [4_096, 0],
  [8_192, 0],
]
/** Tokens of the chunk in which prompts are priced, as in `mean-step.ts`. */
const CHUNK_TOKENS = 1_024
/** What a term that starts at nothing starts with, of the shortest step: logarithms have no zero. */
const NOTHING = 1e-4

export function fitSpeed(known: KnownSpeed): RooflineCoefficients {
  const wanted = answersOf(known.meanTokenUs, known.prefillUs)
  const fitted = fitLeastSquares(startOf(known).map(Math.log), (logs) => {
    const given = answersFor(coefficientsOf(logs.map(Math.exp)), known.tokenBudget)
    return given.map((us, i) => us / wanted[i]! - 1)
  })
  return coefficientsOf(fitted.map((log) => Number(Math.exp(log).toPrecision(5))))
}

/** What this profile says at the points, and what it ought to say. */
export function speedErrors(coefficients: RooflineCoefficients, known: KnownSpeed): readonly number[] {
  const wanted = answersOf(known.meanTokenUs, known.prefillUs)
  return answersFor(coefficients, known.tokenBudget).map((us, i) => us / wanted[i]! - 1)
}

function answersOf(meanTokenUs: StepModel['meanTokenUs'], prefillUs: KnownSpeed['prefillUs']): number[] {
  return [
    ...STEP_POINTS.map(([sequences, each, prompt]) => meanTokenUs(sequences, sequences * each, prompt)),
    ...PROMPT_POINTS.map(([uncached, cached]) => prefillUs(uncached, cached)),
  ]
}

/** `mean-step.ts` and `pool-speed.ts` without their rounding to whole microseconds, which hides a small change. */
function answersFor(c: RooflineCoefficients, tokenBudget: number): number[] {
  const decodeUs = (sequences: number, contextSum: number): number =>
    stepUs(c, { ...decodes(sequences), contextSum, contextMax: contextSum / sequences })
  const promptUs = (sequences: number): number => {
    const prefillTokens = Math.max(1, Math.min(CHUNK_TOKENS, tokenBudget) - sequences)
    const chunk = { ...decodes(sequences), prefillTokens, chunkPairs: prefillTokens ** 2 / 2 }
    return Math.max(0, stepUs(c, chunk) - decodeUs(sequences, 0)) / prefillTokens
  }
  return answersOf(
    (sequences, contextSum, prompt) => decodeUs(sequences, contextSum) + prompt * promptUs(sequences),
    (uncached, cached) => {
      let us = 0
      for (let done = 0; done < uncached; done += tokenBudget) {
        const q = Math.min(tokenBudget, uncached - done)
        us += stepUs(c, { ...IDLE_STEP, prefillTokens: q, chunkPairs: q ** 2 / 2, contextPairs: q * (cached + done) })
      }
      return us
    },
  )
}

const decodes = (sequences: number) => ({ ...IDLE_STEP, decodeCount: sequences, decodeTokens: sequences })

/** Straight lines through the answers, as far as the formula has them: no term is negative. */
function startOf({ meanTokenUs, prefillUs, tokenBudget }: KnownSpeed): number[] {
  const oneUs = meanTokenUs(1, 0, 0)
  const perSequence = (meanTokenUs(64, 0, 0) - oneUs) / 63
  const kvReadUsPerToken = (meanTokenUs(64, 64_000, 0) - meanTokenUs(64, 0, 0)) / 64_000
  const [short, knot, chunk] = [prefillUs(16, 0), prefillUs(CHUNK_TOKENS, 0), prefillUs(tokenBudget, 0)]
  const long = prefillUs(4 * tokenBudget, 0)
  const pairUs = Math.max(0, long - 4 * chunk) / (6 * tokenBudget ** 2)
  const steep = (chunk - knot) / Math.max(1, tokenBudget - CHUNK_TOKENS) - (pairUs * (CHUNK_TOKENS + tokenBudget)) / 2
  const flat = (knot - short) / (CHUNK_TOKENS - 16) - (pairUs * CHUNK_TOKENS) / 2
  const perToken = Math.min(perSequence, flat)
  const compute = steep - perToken
  const weightsUs = Math.min(0.9 * oneUs, Math.max(0.3 * short, CHUNK_TOKENS * (steep - flat), 64 * compute))
  const promptsUs = (meanTokenUs(64, 0, 320) - meanTokenUs(64, 0, 0)) * (960 / 320)
  const prefillBaseUs = promptsUs - 960 * perToken - compute * CHUNK_TOKENS + weightsUs - (pairUs * 960 ** 2) / 2
  const hostUs = Math.min(oneUs - weightsUs, short - weightsUs - Math.max(0, prefillBaseUs))
  const decodeBaseUs = oneUs - weightsUs - Math.max(0, hostUs)
  const least = NOTHING * oneUs
  return [
    Math.max(least, weightsUs),
    Math.max(least / CHUNK_TOKENS, compute),
    4,
    Math.max(least, hostUs),
    Math.max(least, decodeBaseUs),
    Math.max(least / 64, perSequence - perToken),
    Math.max(least / 64_000, kvReadUsPerToken),
    Math.max(least, prefillBaseUs),
    Math.max(least / CHUNK_TOKENS ** 2, pairUs),
    Math.max(least / CHUNK_TOKENS, perToken),
  ]
}

function coefficientsOf(parameters: readonly number[]): RooflineCoefficients {
  const [weightsUs, computeUsPerToken, kneeSharpness, hostUs, decodeBaseUs] = parameters as number[]
  const [, , , , , decodeUsPerSequence, kvReadUsPerToken, prefillBaseUs, pairUs, perTokenUs] = parameters as number[]
  return {
    kind: 'roofline',
    weightsUs: weightsUs!,
    computeUsPerToken: computeUsPerToken!,
    kneeSharpness: Math.min(12, Math.max(1, kneeSharpness!)),
    lmHeadUs: 0,
    decodeBaseUs: decodeBaseUs!,
    kvReadUsPerToken: kvReadUsPerToken!,
    contextUsPerToken: 0,
    decodeUsPerSequence: decodeUsPerSequence!,
    prefillBaseUs: prefillBaseUs!,
    attentionUsPerPair: pairUs!,
    contextAttentionUsPerPair: pairUs!,
    allReduceBaseUs: 0,
    allReduceUsPerToken: perTokenUs!,
    hostUs: hostUs!,
    prefillFloorUs: 0,
    prefillFloorSharpness: 4,
    decodeFloorUs: 0,
  }
}
