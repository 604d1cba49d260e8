import type { Instant } from '../../base/clock.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Plan } from '../../domain/plan.ts'
import type { Request } from '../../domain/request.ts'

/**
 * When would this plan be done, and is that soon enough?
 *
 * Two promises: the first token within the SLO's time, the last before the deadline. Predicted are the wait for a turn
 * plus the prefill, and from there the output at the pool's usual pace. Each prediction is corrected by the calibrated
 * bias (what actual ÷ predicted usually was) and must fit the promise less the margin. Offline work is promised a
 * deadline and no first token.
 *
 * Pure arithmetic on facts; it decides nothing. `admission.ts` does.
 *
 * Example: wait 300 ms, prefill 120 ms, 120 tokens of 15 ms: first token 420 ms, finish 2.2 s. SLO 500 ms with a
 * margin of 10 %: 420 ≤ 450, it fits; with a bias of 1.2 it does not (504 > 450).
 */

/** What experience says about predictions of this pool, SLO class and size; see `calibration.ts`. */
export interface Calibrated {
  /** Actual ÷ predicted, typically: 1.2 when things take a fifth longer than we say. */
  readonly biasRatio: number
  /** Share of the promise that is kept back for scatter; at least ADMISSION_SAFETY_MARGIN. */
  readonly marginRatio: number
}

/** Durations from now, as predicted, before any correction. */
export interface Prediction {
  readonly waitUs: number
  readonly ttftUs: number
  readonly finishUs: number
  /** The wait is for a few answers to end: calibration does not learn from it (`lumpy-wait.ts`). */
  readonly isLumpy?: true
}

/** Durations from now that the promises leave; Infinity where nothing is promised. */
export interface Patience {
  readonly ttftUs: number
  readonly finishUs: number
}

/** By how much a promise would be missed (negative: met with so much to spare), after correction. */
export interface Lateness {
  readonly promise: 'ttft' | 'deadline'
  readonly lateUs: number
  /** Corrected prediction, and what of the promise the margin leaves: their difference is `lateUs`. */
  readonly predictedUs: number
  readonly affordableUs: number
  /** Of these, the wait, and the wait that could be afforded: their quotient is the pressure. */
  readonly waitUs: number
  readonly affordableWaitUs: number
}

export function predict(plan: Plan, choiceCount: number, speed: EngineSpeed, waitUs: number): Prediction {
  const { promptTokens, cachedTokens, outputTokens } = plan.estimate
  const outputPerChoice = outputTokens / choiceCount
  const prefillUs = speed.prefillUs(Math.max(0, promptTokens - cachedTokens), cachedTokens)
  const ttftUs = waitUs + prefillUs
  // The first token comes with the prefill; the others see a context that grows from the prompt on.
  const decodeUs = Math.max(0, outputPerChoice - 1) * speed.tokenUs(promptTokens + Math.round(outputPerChoice / 2))
  return { waitUs, ttftUs, finishUs: ttftUs + decodeUs }
}

export function patienceOf(now: Instant, request: Request): Patience {
  return {
    ttftUs: request.band === 'offline' ? Number.POSITIVE_INFINITY : request.arrivedAt + request.slo.ttftUs - now,
    finishUs: request.deadlineAt - now,
  }
}

/** The promise that is missed by most, or met by least. */
export function latenessOf(
  prediction: Prediction,
  patience: Patience,
  calibrated: { readonly ttft: Calibrated; readonly finish: Calibrated },
): Lateness {
  const { waitUs, ttftUs, finishUs } = prediction
  const isTtftWorse =
    lateBy(ttftUs, patience.ttftUs, calibrated.ttft) > lateBy(finishUs, patience.finishUs, calibrated.finish)
  return isTtftWorse
    ? judge('ttft', { waitUs, rawUs: ttftUs, patienceUs: patience.ttftUs }, calibrated.ttft)
    : judge('deadline', { waitUs, rawUs: finishUs, patienceUs: patience.finishUs }, calibrated.finish)
}

function lateBy(rawUs: number, patienceUs: number, { biasRatio, marginRatio }: Calibrated): number {
  return Math.ceil(rawUs * biasRatio - patienceUs * (1 - marginRatio))
}

/** A request that leaves itself no time to wait says nothing about load: it counts as if it had left a quarter. */
const WAIT_PATIENCE_RATIO_MIN = 0.25

function judge(
  promise: Lateness['promise'],
  { waitUs, rawUs, patienceUs }: { readonly waitUs: number; readonly rawUs: number; readonly patienceUs: number },
  { biasRatio, marginRatio }: Calibrated,
): Lateness {
  const predictedUs = rawUs * biasRatio
  const affordableUs = patienceUs * (1 - marginRatio)
  const serviceUs = (rawUs - waitUs) * biasRatio
  return {
    promise,
    lateUs: lateBy(rawUs, patienceUs, { biasRatio, marginRatio }),
    predictedUs,
    affordableUs,
    waitUs: waitUs * biasRatio,
    affordableWaitUs: Math.max(WAIT_PATIENCE_RATIO_MIN * patienceUs, affordableUs - serviceUs),
  }
}

/**
 * Would it be in time with an engine all to itself? If not, no waiting and no retrying will help: so a prompt that was
 * not counted is taken for as short as it may be.
 */
export function isFeasibleAlone(plan: Plan, request: Request, speedAlone: EngineSpeed, patience: Patience): boolean {
  const { estimate } = plan
  const { promptTokensMin = estimate.promptTokens } = estimate
  const shortest = { ...plan, estimate: { ...estimate, promptTokens: promptTokensMin } }
  const { ttftUs, finishUs } = predict(shortest, request.choiceCount, speedAlone, 0)
  return ttftUs <= patience.ttftUs && finishUs <= patience.finishUs
}
