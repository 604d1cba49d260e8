import { unreachable } from '../base/assert.ts'
import type { ReferenceCoefficients, RooflineCoefficients, StepCoefficients } from './gpu-profile.ts'

/**
 * How long does a step take?
 *
 * A step streams all weights through the chip once, however many tokens ride along, so it is bound by memory when
 * there are few and by arithmetic when there are many; the knee between the two is soft. On top comes attention: each
 * decoding sequence reads its whole context, each prefill chunk multiplies its tokens with all that came before.
 *
 *     n tokens in the step, D decoding sequences, C the sum and L the longest of their contexts, chunks (q, ctx)
 *
 *     T = (W^p + (c·n)^p)^(1/p) + lm + host + AR0 + AR1·n
 *         + [D > 0] (d0 + s·D + max(k·C, l·L))
 *         + [prefill] (p0 + a·Σ q²/2 + b·Σ q·ctx)
 *
 *     W weights, c compute per token, p sharpness of the knee, lm the output layer, AR all-reduce, k reading keys and
 *     values, l one sequence's serial attention (it rules when the batch is too small to fill the chip), a and b
 *     attention per pair of tokens inside a chunk and from a chunk to its context (equal when one kernel does both).
 *
 * **The floor.** A host that launches a prefill kernel by kernel works beside the GPU, and the slower of the two decides:
 * (F^r + T^r)^(1/r) for a step with a prefill. The maximum is soft because the host's time varies from step to step. A
 * decode step is a captured graph, launched at once; its floor, if any, is hard.
 *
 * **Exact sums.** While only decodes run, C grows by D a step and everything else stays: step times form an arithmetic
 * progression, and a thousand of them are one multiplication. So that leaping and stepping give the same instants to
 * the last bit, a duration is a whole number of *ticks* of 2^-20 µs: sums of whole numbers do not depend on their
 * order. Powers are rounded to whole microseconds, because they differ between processors.
 *
 * Worked example, `h200-llama-8b` of the catalogue: 64 sequences at 1,024 tokens measure 7.51 ms.
 */

/** 2^20 ticks are one microsecond. */
export const TICKS_PER_US = 1_048_576

/** What a step has to do, in the only terms that its duration depends on. */
export interface StepLoad {
  /** Sequences that decode, and the tokens computed for them (more than one each when speculating). */
  decodeCount: number
  decodeTokens: number
  contextSum: number
  contextMax: number
  prefillTokens: number
  /** Σ q²/2 and Σ q·ctx over the chunks. */
  chunkPairs: number
  contextPairs: number
}

/** A stretch of equal decode steps: the first takes `ticks`, each next one `ticksGrowth` more, for `stepsMax` steps. */
export interface StepPace {
  ticks: number
  ticksGrowth: number
  stepsMax: number
}

/** A longer stretch is taken in parts: more would save nothing. */
const STRETCH_STEPS_MAX = 4_096
/** Whole numbers are exact up to 2^53. */
const STRETCH_TICKS_MAX = 2 ** 52

/** How many steps of this pace can be summed up exactly. */
export function exactStepsMax(pace: StepPace): number {
  const ticksMax = pace.ticks + pace.ticksGrowth * STRETCH_STEPS_MAX
  return Math.max(1, Math.min(pace.stepsMax, STRETCH_STEPS_MAX, Math.floor(STRETCH_TICKS_MAX / ticksMax)))
}

export class StepTime {
  readonly #coefficients: StepCoefficients
  /** The knee by token count; it is asked for the same few counts again and again. NaN: not asked yet. */
  readonly #knee: Float64Array
  readonly #kvReadTicks: number
  readonly #contextTicks: number

  constructor(coefficients: StepCoefficients, tokenBudget: number) {
    this.#coefficients = coefficients
    this.#knee = new Float64Array(tokenBudget + 1).fill(Number.NaN)
    const isRoofline = coefficients.kind === 'roofline'
    this.#kvReadTicks = isRoofline ? Math.round(coefficients.kvReadUsPerToken * TICKS_PER_US) : 0
    this.#contextTicks = isRoofline ? Math.round(coefficients.contextUsPerToken * TICKS_PER_US) : 0
  }

  /** Writes the pace of a step with this load, and of the pure decode steps after it, into `pace`. */
  paceOf(load: StepLoad, pace: StepPace): void {
    const c = this.#coefficients
    switch (c.kind) {
      case 'roofline':
        this.#rooflinePace(c, load, pace)
        return
      case 'reference':
        pace.ticks = Math.round(referenceUs(c, load)) * TICKS_PER_US
        pace.ticksGrowth = 0
        pace.stepsMax = Number.POSITIVE_INFINITY
        return
      default:
        unreachable(c)
    }
  }

  /** Three lines over the number of steps: reading all contexts, the longest context, the floor. The highest counts. */
  #rooflinePace(c: RooflineCoefficients, load: StepLoad, pace: StepPace): void {
    if (load.prefillTokens > 0) {
      pace.ticks = Math.round(stepUs(c, load)) * TICKS_PER_US
      pace.ticksGrowth = 0
      pace.stepsMax = 1
      return
    }
    const base = Math.round(
      (this.#kneeUs(c, load.decodeTokens + load.prefillTokens) + besidesKneeUs(c, load)) * TICKS_PER_US,
    )
    const sumTicks = base + this.#kvReadTicks * load.contextSum
    const sumGrowth = this.#kvReadTicks * load.decodeTokens
    const longestTicks = base + this.#contextTicks * load.contextMax
    const longestGrowth = this.#contextTicks
    const floorTicks = Math.round(c.decodeFloorUs * TICKS_PER_US)

    if (sumTicks >= longestTicks && sumTicks >= floorTicks) {
      pace.ticks = sumTicks
      pace.ticksGrowth = sumGrowth
      // Reading all grows at least as fast as the longest alone unless the longest is very serial.
      pace.stepsMax = stepsUntilOvertaken(sumTicks, sumGrowth, longestTicks, longestGrowth)
    } else if (longestTicks >= floorTicks) {
      pace.ticks = longestTicks
      pace.ticksGrowth = longestGrowth
      pace.stepsMax = stepsUntilOvertaken(longestTicks, longestGrowth, sumTicks, sumGrowth)
    } else {
      pace.ticks = floorTicks
      pace.ticksGrowth = 0
      pace.stepsMax = Math.min(
        stepsUntilOvertaken(floorTicks, 0, sumTicks, sumGrowth),
        stepsUntilOvertaken(floorTicks, 0, longestTicks, longestGrowth),
      )
    }
  }

  /** Of weights and compute together: what a step of this many tokens takes without attention and constants. */
  kneeUsOf(tokens: number): number {
    const c = this.#coefficients
    return c.kind === 'roofline' ? this.#kneeUs(c, tokens) : 0
  }

  #kneeUs(c: RooflineCoefficients, tokens: number): number {
    const known = this.#knee[tokens]
    if (known !== undefined && !Number.isNaN(known)) return known
    const us = Math.round(kneeUs(c, tokens))
    this.#knee[tokens] = us
    return us
  }
}

/** The formula as it stands, without rounding: for fitting and for predictions, not for the timeline. */
export function stepUs(c: StepCoefficients, load: StepLoad): number {
  if (c.kind === 'reference') return referenceUs(c, load)
  const fixedUs = kneeUs(c, load.decodeTokens + load.prefillTokens) + besidesKneeUs(c, load)
  const attentionUs = Math.max(c.kvReadUsPerToken * load.contextSum, c.contextUsPerToken * load.contextMax)
  const us = fixedUs + attentionUs
  if (load.prefillTokens === 0) return Math.max(c.decodeFloorUs, us)
  return c.prefillFloorUs === 0 ? us : softMax(c.prefillFloorUs, us, c.prefillFloorSharpness)
}

function kneeUs(c: RooflineCoefficients, tokens: number): number {
  return softMax(c.weightsUs, c.computeUsPerToken * tokens, c.kneeSharpness)
}

function softMax(a: number, b: number, sharpness: number): number {
  return (a ** sharpness + b ** sharpness) ** (1 / sharpness)
}

/** All that does not grow while a set decodes, the knee excepted. */
function besidesKneeUs(c: RooflineCoefficients, load: StepLoad): number {
  const tokens = load.decodeTokens + load.prefillTokens
  let us = c.lmHeadUs + c.hostUs + c.allReduceBaseUs + c.allReduceUsPerToken * tokens
  if (load.decodeCount > 0) us += c.decodeBaseUs + c.decodeUsPerSequence * load.decodeCount
  if (load.prefillTokens > 0) {
    us += c.prefillBaseUs + c.attentionUsPerPair * load.chunkPairs + c.contextAttentionUsPerPair * load.contextPairs
  }
  return us
}

function referenceUs(c: ReferenceCoefficients, load: StepLoad): number {
  const prefillS = load.prefillTokens / c.prefillTokensPerSecond
  const speedUp = 1 - c.batchShare + c.batchShare * Math.sqrt(load.decodeCount)
  const decodeS = load.decodeCount / (c.decodeTokensPerSecond * speedUp)
  return (prefillS + decodeS) * 1e6
}

/** For how many steps the line that starts higher stays at least as high as the other. */
function stepsUntilOvertaken(ticks: number, growth: number, otherTicks: number, otherGrowth: number): number {
  if (otherGrowth <= growth) return Number.POSITIVE_INFINITY
  return Math.floor((ticks - otherTicks) / (otherGrowth - growth)) + 1
}
