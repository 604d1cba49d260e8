import type { StepCoefficients } from '../../../src/engine/gpu-profile.ts'
import { type StepLoad, stepUs } from '../../../src/engine/step-time.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'

/**
 * An engine in a page, on our step-time model, that can do what ours does not: prefill first. *Chunked*: every decode in
 * every step, and what is left of the token budget for prompts, in pieces (vLLM today). *Prefill first*: as long as a
 * prompt waits, a step reads whole prompts and nobody decodes (vLLM before chunked prefill, and S-LoRA).
 */
export type Mode = 'chunked' | 'prefill-first'

export interface StepEngineOptions {
  readonly mode: Mode
  readonly coefficients: StepCoefficients
  readonly tokenBudget: number
  readonly sequencesMax: number
  readonly kvTokens: number
}

export interface Answer {
  readonly request: TraceRequest
  readonly firstTokenAtUs: number
  readonly endedAtUs: number
  readonly longestGapUs: number
}

interface Sequence {
  readonly request: TraceRequest
  computed: number
  generated: number
  firstTokenAtUs: number
  lastTokenAtUs: number
  longestGapUs: number
}

export function runStepEngine(requests: readonly TraceRequest[], options: StepEngineOptions): Answer[] {
  const { mode, coefficients, tokenBudget, sequencesMax, kvTokens } = options
  const answers: Answer[] = []
  const waiting: Sequence[] = []
  let prefilling: Sequence[] = []
  let decoding: Sequence[] = []
  let heldTokens = 0
  let nextArrival = 0
  let now = 0
  const arrive = (): void => {
    for (; (requests[nextArrival]?.atUs ?? Number.POSITIVE_INFINITY) <= now; nextArrival++) {
      const request = requests[nextArrival] as TraceRequest
      waiting.push({ request, computed: 0, generated: 0, firstTokenAtUs: 0, lastTokenAtUs: 0, longestGapUs: 0 })
    }
  }
  /** Memory is held for the whole answer from the start, so that neither mode ever preempts. */
  const admit = (budget: number): void => {
    let left = budget - prefilling.reduce((sum, one) => sum + one.request.promptTokens - one.computed, 0)
    while (waiting.length > 0 && left > 0 && decoding.length + prefilling.length < sequencesMax) {
      const { promptTokens, outputTokens } = (waiting[0] as Sequence).request
      if (heldTokens + promptTokens + outputTokens > kvTokens) return
      // Whole prompts only, but a longer one than any step takes goes alone.
      if (mode === 'prefill-first' && promptTokens > left && prefilling.length > 0) return
      heldTokens += promptTokens + outputTokens
      left -= promptTokens
      prefilling.push(waiting.shift() as Sequence)
    }
  }
  const emit = (sequence: Sequence): void => {
    if (sequence.generated === 0) sequence.firstTokenAtUs = now
    else sequence.longestGapUs = Math.max(sequence.longestGapUs, now - sequence.lastTokenAtUs)
    sequence.lastTokenAtUs = now
    sequence.generated++
  }
  while (answers.length < requests.length) {
    if (waiting.length + prefilling.length + decoding.length === 0)
      now = Math.max(now, (requests[nextArrival] as TraceRequest).atUs)
    arrive()
    admit(mode === 'chunked' ? tokenBudget - decoding.length : tokenBudget)
    const decodes = mode === 'prefill-first' && prefilling.length > 0 ? [] : decoding
    let left = mode === 'chunked' ? tokenBudget - decodes.length : Number.POSITIVE_INFINITY
    const load = emptyLoad()
    for (const { request, generated } of decodes) addDecode(load, request.promptTokens + generated)
    for (const sequence of prefilling) {
      const tokens = Math.min(left, sequence.request.promptTokens - sequence.computed)
      addChunk(load, tokens, sequence.computed)
      sequence.computed += tokens
      left -= tokens
    }
    now += Math.round(stepUs(coefficients, load))
    for (const sequence of decodes) emit(sequence)
    const read = prefilling.filter(({ request, computed }) => computed === request.promptTokens)
    prefilling = prefilling.filter(({ request, computed }) => computed < request.promptTokens)
    for (const sequence of read) emit(sequence)
    decoding = [...decoding, ...read].filter((sequence) => {
      const { request, generated, firstTokenAtUs, longestGapUs } = sequence
      if (generated < request.outputTokens) return true
      heldTokens -= request.promptTokens + request.outputTokens
      answers.push({ request, firstTokenAtUs, endedAtUs: now, longestGapUs })
      return false
    })
  }
  return answers
}

function emptyLoad(): StepLoad {
  return {
    decodeCount: 0,
    decodeTokens: 0,
    contextSum: 0,
    contextMax: 0,
    prefillTokens: 0,
    chunkPairs: 0,
    contextPairs: 0,
  }
}

function addDecode(load: StepLoad, context: number): void {
  load.decodeCount++
  load.decodeTokens++
  load.contextSum += context
  load.contextMax = Math.max(load.contextMax, context)
}

function addChunk(load: StepLoad, tokens: number, context: number): void {
  load.prefillTokens += tokens
  load.chunkPairs += (tokens * tokens) / 2
  load.contextPairs += tokens * context
}
