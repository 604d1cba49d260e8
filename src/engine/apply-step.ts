import type { Instant } from '../base/clock.ts'
import type { Usage } from '../domain/delta.ts'
import type { EngineEvent } from './engine-event.ts'
import { countContext, type EngineState, releaseBlocks } from './engine-state.ts'
import type { StepPlan } from './plan-step.ts'
import { NEVER, type Sequence } from './sequence.ts'

/**
 * What has changed when a step is over? Each decoding sequence has one token more (or a burst), each prompt that was
 * computed to its end has made a token and decodes from now on, those that have all their tokens are gone and their
 * blocks free.
 *
 * A stretch of `steps` equal decode steps is applied at once; only in its last one can a sequence be done.
 */
export function applyStep(
  state: EngineState,
  plan: StepPlan,
  at: Instant,
  options: { steps: number; events: EngineEvent[] },
): void {
  const { steps, events } = options
  state.counters.steps += steps
  if (plan.decodeCount > 0) applyDecodes(state, at, steps, events)
  for (const sequence of plan.chunks) applyChunk(state, sequence, at, events)
  plan.chunks.length = 0
}

function applyDecodes(state: EngineState, at: Instant, steps: number, events: EngineEvent[]): void {
  const { decodes, counters, done } = state
  countContext(state, steps)
  counters.generationTokens += decodes.finishSteps(steps, false, done)
  for (const sequence of done) {
    state.shares.leave(sequence)
    finish(state, sequence, at, events)
  }
  done.length = 0
  if (decodes.everyStepCount > 0) reportEveryStep(state, at, events)
}

function applyChunk(state: EngineState, sequence: Sequence, at: Instant, events: EngineEvent[]): void {
  state.counters.promptTokens += sequence.plannedTokens
  sequence.plannedTokens = 0
  if (sequence.computedTokens < sequence.knownTokens) return
  state.prefilling.splice(state.prefilling.indexOf(sequence), 1)
  sequence.generatedTokens++
  state.counters.generationTokens++
  if (sequence.firstTokenAt === NEVER) {
    sequence.firstTokenAt = at
    sequence.reportedTokens = 1
    events.push({ kind: 'first-token', at, id: sequence.id, cachedTokens: sequence.cachedTokens })
  } else if (sequence.isReportedEveryStep && sequence.generatedTokens < sequence.outputTokens) {
    reportTokens(sequence, sequence.generatedTokens, at, events)
  }
  if (sequence.generatedTokens < sequence.outputTokens) {
    state.decodes.join(sequence)
    state.shares.join(sequence)
  } else finish(state, sequence, at, events)
}

function reportEveryStep(state: EngineState, at: Instant, events: EngineEvent[]): void {
  for (let sequence = state.decodes.first; sequence !== undefined; sequence = sequence.next) {
    if (sequence.isReportedEveryStep) reportTokens(sequence, state.decodes.generatedBy(sequence), at, events)
  }
}

function reportTokens(sequence: Sequence, generatedTokens: number, at: Instant, events: EngineEvent[]): void {
  const tokens = generatedTokens - sequence.reportedTokens
  sequence.reportedTokens = generatedTokens
  events.push({ kind: 'tokens', at, id: sequence.id, tokens })
}

function finish(state: EngineState, sequence: Sequence, at: Instant, events: EngineEvent[]): void {
  releaseBlocks(state, sequence)
  sequence.place = 'ended'
  state.shares.ended(sequence)
  state.counters.finished++
  events.push({
    kind: 'finished',
    at,
    id: sequence.id,
    tokens: sequence.generatedTokens - sequence.reportedTokens,
    arrivedAt: sequence.arrivedAt,
    firstTokenAt: sequence.firstTokenAt,
    usage: usageOf(sequence),
    preemptions: sequence.preemptions,
    time: state.shares.timeOf(sequence, 0),
  })
}

/** Of a sequence that has left the decode set, or never was in it. */
export function usageOf(sequence: Sequence): Usage {
  return {
    promptTokens: sequence.promptTokens,
    cachedTokens: Math.max(0, sequence.cachedTokens),
    outputTokens: sequence.generatedTokens,
  }
}
