import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import { applyStep, usageOf } from './apply-step.ts'
import type { Abortion, EngineEvent } from './engine-event.ts'
import { assertEngineInvariants } from './engine-invariants.ts'
import { type EngineLimits, type EngineState, makeEngineState, releaseBlocks } from './engine-state.ts'
import { type EngineView, viewEngine } from './engine-view.ts'
import type { StepCoefficients } from './gpu-profile.ts'
import { makeStepPlan, planStep } from './plan-step.ts'
import { Sequence, type SequenceSpec } from './sequence.ts'
import { SteadyDecodes } from './steady-decodes.ts'
import { type StepPace, StepTime, TICKS_PER_US } from './step-time.ts'

/**
 * A continuous-batching inference engine without a GPU: who runs in which step is decided as vLLM does, how long a
 * step takes is computed from measured hardware. One story: **decide** (`plan-step.ts`) → **time** (`step-time.ts`) →
 * **apply** (`apply-step.ts`), over and over.
 *
 * It is a machine in the sense of DESIGN.md §2: it has no clock. Whoever owns it
 *
 *   - calls `submit` and `abort` when those things happen,
 *   - asks `nextEventAt` after every call and sees to it that `advance` is called then,
 *   - gets from `advance` what has happened since, with the exact instants, even if it comes late.
 *
 * **Its timeline is its own.** Steps begin and end at instants that depend on submissions and aborts alone, not on how
 * often or how punctually `advance` is called. A running step is never interrupted: a sequence that arrives during
 * one joins at the next boundary, an aborted one gives back its blocks at once but the step takes as long as it takes.
 * Sequences submitted at the instant at which an idle engine starts share its first step.
 *
 * **Leaps.** While nothing but decoding goes on, and nobody is done, runs out of blocks or has to be told, steps are
 * not taken one by one: a stretch is planned, timed in closed form and applied at once. Whatever happens in its middle
 * first catches up to the step that is running then. Leaping and stepping agree to the microsecond
 * (`engine.property.test.ts` compares with a twin that does neither).
 *
 * It does not know tenants, text or money, and keeps L2 (every block taken is given back once), L5 (arrival ≤ first
 * token ≤ end), L8 (blocks free + held = total), L9 (same calls, same events) and L10 (nobody outside can read the true
 * length of an answer).
 */
export interface EngineOptions {
  readonly coefficients: StepCoefficients
  readonly limits: EngineLimits
}

export type Submission =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly code: 'never-fits' | 'queue-full'; readonly because: string }

/** Exactness ends at 2^53 ticks; four thousand steps of up to two seconds stay below it. */
const LEAP_STEPS_MAX = 4_096

export class Engine {
  readonly #state: EngineState
  readonly #stepTime: StepTime
  readonly #plan = makeStepPlan()
  readonly #pace: StepPace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  readonly #sequences = new Map<string, Sequence>()
  #events: EngineEvent[] = []
  #ordinal = 0
  /** The latest instant anyone has mentioned. */
  #now: Instant = 0

  /** The last step boundary: whole microseconds and ticks beyond them. */
  #boundaryUs: Instant = 0
  #boundaryTicks = 0
  /** Steps of the stretch that began at the boundary; zero when none runs. */
  #stretchSteps = 0
  #busyUs = 0

  constructor(options: EngineOptions) {
    const { limits } = options
    assertLimits(limits)
    this.#state = makeEngineState(
      limits,
      (unitBlocks) =>
        new SteadyDecodes({ sequencesMax: limits.sequencesMax, blockTokens: limits.blockTokens, unitBlocks }),
    )
    this.#stepTime = new StepTime(options.coefficients, limits.tokenBudget)
  }

  submit(now: Instant, spec: SequenceSpec): Submission {
    this.#catchUp(now, false)
    assert(spec.promptTokens >= 1 && spec.outputTokens >= 1, 'a sequence has a prompt and an answer')
    assert(!this.#sequences.has(spec.id), 'a sequence is submitted once')
    const refusal = this.#refusalOf(spec)
    if (refusal !== undefined) return refusal
    if (this.#isIdle()) {
      this.#boundaryUs = now
      this.#boundaryTicks = 0
    }
    const sequence = new Sequence(spec, this.#ordinal++, now)
    this.#sequences.set(spec.id, sequence)
    this.#state.waiting.pushLast(sequence)
    // It wants to join at the next boundary: what was planned beyond the running step no longer holds.
    this.#stretchSteps = Math.min(this.#stretchSteps, 1)
    return { kind: 'taken' }
  }

  /** Ends a sequence now and says what it had come to; undefined when it has ended already. */
  abort(now: Instant, id: string): Abortion | undefined {
    this.#catchUp(now, false)
    const sequence = this.#sequences.get(id)
    if (sequence === undefined) return undefined
    this.#sequences.delete(id)
    this.#takeOut(sequence)
    releaseBlocks(this.#state, sequence)
    this.#state.counters.aborted++
    this.#stretchSteps = Math.min(this.#stretchSteps, 1)
    return {
      id,
      tokens: sequence.generatedTokens - sequence.reportedTokens,
      usage: usageOf(sequence),
      preemptions: sequence.preemptions,
    }
  }

  /** When `advance` has something to do: undefined while the engine is idle. */
  nextEventAt(): Instant | undefined {
    if (this.#events.length > 0) return this.#now
    if (this.#stretchSteps > 0) return this.#stretchEndAt()
    return this.#isIdle() ? undefined : this.#boundaryUs
  }

  /** Everything that has happened up to and including `now`, in order. */
  advance(now: Instant): readonly EngineEvent[] {
    this.#catchUp(now, true)
    if (this.#events.length === 0) return NO_EVENTS
    const events = this.#events
    this.#events = []
    return events
  }

  view(now: Instant): EngineView {
    this.#catchUp(now, false)
    return viewEngine(this.#state, this.#busyUs)
  }

  assertInvariants(): void {
    assertEngineInvariants(this.#state, this.#sequences.values())
  }

  /** Ends every stretch that is over at `now`, begins the next ones, and leaps inside the one that is running. */
  #catchUp(now: Instant, isStartIncluded: boolean): void {
    assert(now >= this.#now, 'time does not run backwards')
    this.#now = now
    for (;;) {
      if (this.#stretchSteps === 0) {
        const mayStart = isStartIncluded ? this.#boundaryUs <= now : this.#boundaryUs < now
        if (this.#isIdle() || !mayStart) return
        this.#beginStretch()
      }
      if (this.#stretchEndAt() > now) break
      this.#endStretch()
    }
    if (this.#stretchSteps > 1) this.#leapTo(now)
  }

  #beginStretch(): void {
    const { decodes, pool } = this.#state
    planStep(this.#state, this.#plan)
    assert(this.#plan.decodeTokens + this.#plan.prefillTokens > 0, 'a step has work')
    this.#stepTime.paceOf(this.#plan, this.#pace)
    const isLeap = this.#plan.prefillTokens === 0 && this.#plan.isQueueSettled
    // The first step has its blocks; the others take theirs when they begin.
    this.#stretchSteps = isLeap ? decodes.leapSteps(pool.freeBlocks, Math.min(this.#pace.stepsMax, LEAP_STEPS_MAX)) : 1
  }

  #endStretch(): void {
    const steps = this.#stretchSteps
    this.#moveBoundary(steps)
    if (steps > 1) this.#state.pool.take(this.#state.decodes.blocksForSteps(steps - 1))
    this.#stretchSteps = 0
    const events = this.#events
    const from = events.length
    applyStep(this.#state, this.#plan, this.#boundaryAt(), { steps, events })
    for (let i = from; i < events.length; i++) {
      const event = events[i] as EngineEvent
      if (event.kind === 'finished') this.#sequences.delete(event.id)
    }
  }

  /** Applies the steps of the running stretch that are over at `now`; none of them ends a sequence. */
  #leapTo(now: Instant): void {
    const { decodes, pool, counters, done } = this.#state
    const steps = this.#stepsOverAt(now)
    if (steps === 0) return
    pool.take(decodes.blocksForSteps(steps))
    this.#moveBoundary(steps)
    counters.steps += steps
    counters.generationTokens += decodes.finishSteps(steps, true, done)
    this.#pace.ticks += this.#pace.ticksGrowth * steps
    this.#stretchSteps -= steps
  }

  /** By bisection over the exact sum: no root to round. */
  #stepsOverAt(now: Instant): number {
    const ticksLeft = (now - this.#boundaryUs) * TICKS_PER_US - this.#boundaryTicks
    let over = 0
    let notOver = this.#stretchSteps
    while (notOver - over > 1) {
      const middle = (over + notOver) >> 1
      if (stretchTicks(this.#pace, middle) <= ticksLeft) over = middle
      else notOver = middle
    }
    return over
  }

  #moveBoundary(steps: number): void {
    const ticks = this.#boundaryTicks + stretchTicks(this.#pace, steps)
    const us = Math.floor(ticks / TICKS_PER_US)
    this.#boundaryUs += us
    this.#boundaryTicks = ticks - us * TICKS_PER_US
    this.#busyUs += us
  }

  /** An event is told at the first whole microsecond at which it has happened. */
  #boundaryAt(): Instant {
    return this.#boundaryTicks > 0 ? this.#boundaryUs + 1 : this.#boundaryUs
  }

  #stretchEndAt(): Instant {
    return (
      this.#boundaryUs + Math.ceil((this.#boundaryTicks + stretchTicks(this.#pace, this.#stretchSteps)) / TICKS_PER_US)
    )
  }

  #isIdle(): boolean {
    const { waiting, prefilling, decodes } = this.#state
    return this.#stretchSteps === 0 && waiting.count === 0 && prefilling.length === 0 && decodes.count === 0
  }

  #takeOut(sequence: Sequence): void {
    const { waiting, prefilling, decodes } = this.#state
    if (sequence.place === 'waiting') waiting.remove(sequence)
    else if (sequence.place === 'decoding') decodes.leave(sequence)
    else {
      prefilling.splice(prefilling.indexOf(sequence), 1)
      const index = this.#plan.chunks.indexOf(sequence)
      if (index >= 0) this.#plan.chunks.splice(index, 1)
    }
    sequence.place = 'ended'
  }

  #refusalOf(spec: SequenceSpec): Submission | undefined {
    const { limits, waiting } = this.#state
    // The last token is made but never computed, so it needs no room.
    const blocks = Math.ceil((spec.promptTokens + spec.outputTokens - 1) / limits.blockTokens)
    if (blocks > limits.blockCount) {
      const because = `it needs ${blocks} blocks and the engine has ${limits.blockCount}`
      return { kind: 'refused', code: 'never-fits', because }
    }
    if (limits.waitingMax !== undefined && waiting.count >= limits.waitingMax) {
      return { kind: 'refused', code: 'queue-full', because: `${waiting.count} sequences are waiting` }
    }
    return undefined
  }
}

const NO_EVENTS: readonly EngineEvent[] = []

/** Together, `steps` steps of an arithmetic progression. */
function stretchTicks(pace: StepPace, steps: number): number {
  return steps * pace.ticks + (pace.ticksGrowth * steps * (steps - 1)) / 2
}

function assertLimits(limits: EngineLimits): void {
  const { sequencesMax, tokenBudget, blockCount, blockTokens, prefixUnitTokens = blockTokens } = limits
  assert(sequencesMax >= 1 && blockCount >= 1 && blockTokens >= 1, 'an engine has places and blocks')
  assert(tokenBudget >= sequencesMax, 'the token budget has room for every decoding sequence, as vLLM demands')
  assert(prefixUnitTokens % blockTokens === 0, 'a prefix unit is a whole number of blocks')
}
