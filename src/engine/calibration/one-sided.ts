import type { MeasuredStep } from './measurements.ts'
import type { ServedSteps } from './served-steps.ts'
import { quantile } from './statistics.ts'

/**
 * What can a recording not tell?
 *
 * A fit explains the steps that it has seen, and looks well on them, whatever they are. Three kinds of one-sided
 * recordings make it wrong elsewhere: hardly any step of one kind, so that what the host adds to every step and what a
 * prefill adds cannot be told apart; small batches only (fitted to 8 requests a second, an H200's TTFT comes out 16 % short
 * at 26); steps whose members are not known. Each warning says what to record instead.
 */

/** Below this share a kind of step is too rare. At 8 requests a second, 0.4 of its knee, an H200 had 7 % prefills. */
const KIND_RATIO_MIN = 0.05
/** Below this many rows a kind is an anecdote. */
const KIND_ROWS_MIN = 50
/** The largest batches of a recording reach at least this many sequences, or the time per sequence is extrapolated. */
const BATCH_MIN = 64

export function oneSidedWarnings({ steps, isRebuilt }: ServedSteps): readonly string[] {
  const warnings: string[] = []
  const decodes = steps.filter((step) => step.load.prefillTokens === 0)
  const prefills = steps.filter((step) => step.load.prefillTokens > 0)
  if (isRare(decodes, steps)) {
    warnings.push(
      `only ${rowsOf(decodes, steps)} decode without a prefill: host time and the time per sequence and per token of ` +
        'context are uncertain. Record at a lower rate too.',
    )
  }
  if (isRare(prefills, steps)) {
    warnings.push(
      `only ${rowsOf(prefills, steps)} have a prefill: the time to first token is uncertain. Record at a higher rate too.`,
    )
  }
  const batch =
    steps.length === 0
      ? 0
      : quantile(
          steps.map((step) => step.load.decodeCount),
          0.99,
        )
  if (batch < BATCH_MIN) {
    warnings.push(
      `hardly any step has more than ${Math.round(batch)} sequences: larger batches are extrapolated. Record at the ` +
        'rate where the queue begins to grow, too.',
    )
  }
  if (!isRebuilt) {
    warnings.push(
      'the requests do not explain who was in each step, so attention to earlier chunks is left out. Give all requests ' +
        'of the recording, in the order in which the engine got them.',
    )
  }
  return warnings
}

function isRare(own: readonly MeasuredStep[], all: readonly MeasuredStep[]): boolean {
  return own.length < KIND_ROWS_MIN || own.length < KIND_RATIO_MIN * all.length
}

function rowsOf(own: readonly MeasuredStep[], all: readonly MeasuredStep[]): string {
  return `${own.length} of ${all.length} steps (${((100 * own.length) / all.length).toFixed(1)} %)`
}
