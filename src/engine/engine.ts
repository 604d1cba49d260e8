import { assert } from '../base/assert.ts'
import type { Instant } from '../base/clock.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import { applyStep, usageOf } from './apply-step.ts'
import { BurstDecodes } from './burst-decodes.ts'
import type { Abortion, EngineEvent } from './engine-event.ts'
import { assertEngineInvariants } from './engine-invariants.ts'
import { countContext, type EngineLimits, type EngineState, makeEngineState, releaseBlocks } from './engine-state.ts'
import { type EngineView, viewEngine } from './engine-view.ts'
import type { StepCoefficients } from './gpu-profile.ts'
import { makeStepPlan, planStep } from './plan-step.ts'
import { Sequence, type SequenceSpec } from './sequence.ts'
import { assertSpeculation, draftUs, type Speculation } from './speculation.ts'
import { batchDueAt, blocksInAll, formBatch } from './static-batches.ts'
import { SteadyDecodes } from './steady-decodes.ts'
import { StepShares } from './step-share.ts'
import { exactStepsMax, StepTime, TICKS_PER_US } from './step-time.ts'
import { Timeline } from './timeline.ts'

/**
 * A continuous-batching inference engine without a GPU: who runs in which step is decided as vLLM does, how long a
 * step takes is computed from measured hardware. One story: **decide** (`plan-step.ts`) → **time** (`step-time.ts`) →
 * **apply** (`apply-step.ts`), over and over.
 *
 * The engine is a machine in the sense of docs/architecture/time.md: it has no clock. Its owner
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
  readonly speculation?: Speculation
  /** For the draws of speculation, the only chance in here. */
  readonly seed?: number
}

export type Submission =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly code: 'never-fits' | 'queue-full'; readonly because: string }

export class Engine {
  readonly #state: EngineState
  readonly #stepTime: StepTime
  readonly #shares: StepShares
  readonly #speculation: Speculation | undefined
  readonly #plan = makeStepPlan()
  readonly #timeline = new Timeline()
  readonly #sequences = new Map<string, Sequence>()
  #events: EngineEvent[] = []
  #ordinal = 0
  /** The latest instant anyone has mentioned. */
  #now: Instant = 0

  /** Nothing was submitted, aborted or advanced since the engine was asked at this instant. */
  #askedAt: Instant = -1

  /** Steps of the stretch that began at the boundary; zero when none runs. */
  #stretchSteps = 0

  constructor(options: EngineOptions) {
    const { limits, speculation, seed = 0 } = options
    assertLimits(limits, speculation)
    this.#speculation = speculation
    this.#stepTime = new StepTime(options.coefficients, limits.tokenBudget)
    this.#shares = new StepShares(options.coefficients, this.#stepTime, {
      isBursty: speculation !== undefined,
      draftUsAlone: speculation === undefined ? 0 : draftUs(speculation, 1),
    })
    this.#state = makeEngineState(limits, this.#shares, (unitBlocks) =>
      speculation === undefined
        ? new SteadyDecodes({ ...limits, unitBlocks })
        : new BurstDecodes({ ...limits, unitBlocks, speculation, seed }),
    )
  }

  submit(now: Instant, spec: SequenceSpec): Submission {
    this.#catchUp(now, false)
    assert(spec.promptTokens >= 1 && spec.outputTokens >= 1, 'a sequence has a prompt and an answer')
    const refusal = this.#refusalOf(spec)
    if (refusal !== undefined) return refusal
    if (this.#isIdle()) this.#timeline.startAt(now)
    const sequence = new Sequence(spec, this.#ordinal++, now)
    const known = this.#sequences.size
    this.#sequences.set(spec.id, sequence)
    assert(this.#sequences.size > known, 'a sequence is submitted once')
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
    this.#shares.ended(sequence)
    this.#state.counters.aborted++
    this.#stretchSteps = Math.min(this.#stretchSteps, 1)
    return {
      id,
      tokens: sequence.generatedTokens - sequence.reportedTokens,
      usage: usageOf(sequence),
      preemptions: sequence.preemptions,
      time: this.#shares.timeOf(sequence, 0),
    }
  }

  /** When `advance` has something to do: undefined while the engine is idle. */
  nextEventAt(): Instant | undefined {
    if (this.#events.length > 0) return this.#now
    if (this.#stretchSteps > 0) return this.#timeline.endOf(this.#stretchSteps)
    return this.#isIdle() ? undefined : this.#startAt()
  }

  /** Everything that has happened up to and including `now`, in order. */
  advance(now: Instant): readonly EngineEvent[] {
    this.#catchUp(now, true)
    if (this.#events.length === 0) return NO_EVENTS
    const events = this.#events
    this.#events = []
    return events
  }

  /** Output tokens that a sequence has made by `now`; undefined when it has ended. */
  generatedTokens(now: Instant, id: string): number | undefined {
    this.#catchUp(now, false)
    const sequence = this.#sequences.get(id)
    if (sequence === undefined) return undefined
    return sequence.place === 'decoding' ? this.#state.decodes.generatedBy(sequence) : sequence.generatedTokens
  }

  /** What a sequence has taken of the engine's time by `now`; undefined when it has ended. */
  engineTime(now: Instant, id: string): EngineTime | undefined {
    if (this.#askedAt !== now) this.#catchUp(now, false)
    this.#askedAt = now
    const sequence = this.#sequences.get(id)
    if (sequence === undefined) return undefined
    return this.#shares.timeOf(sequence, this.#stretchSteps > 0 ? this.#timeline.leftRatio(now) : 0)
  }

  view(now: Instant): EngineView {
    this.#catchUp(now, false)
    return viewEngine(this.#state, this.#timeline.busyUs)
  }

  assertInvariants(): void {
    assertEngineInvariants(this.#state, this.#sequences.values())
    this.#shares.assertWhole(this.#sequences.values())
  }

  /** Ends every stretch that is over at `now`, begins the next ones, and leaps inside the one that is running. */
  #catchUp(now: Instant, isStartIncluded: boolean): void {
    assert(now >= this.#now, 'time does not run backwards')
    this.#now = now
    this.#askedAt = -1
    for (;;) {
      if (this.#stretchSteps === 0) {
        const startAt = this.#startAt()
        const mayStart = isStartIncluded ? startAt <= now : startAt < now
        if (this.#isIdle() || !mayStart) return
        if (startAt > this.#timeline.boundaryUs) this.#timeline.startAt(startAt)
        this.#beginStretch()
      }
      if (this.#timeline.endOf(this.#stretchSteps) > now) break
      this.#endStretch()
    }
    if (this.#stretchSteps > 1) this.#leapTo(now, isStartIncluded)
  }

  /** When the next step begins: at the boundary, unless a batch is still gathering. */
  #startAt(): Instant {
    const { boundaryUs } = this.#timeline
    const { staticBatching } = this.#state.limits
    if (staticBatching === undefined) return boundaryUs
    return Math.max(boundaryUs, batchDueAt(this.#state, staticBatching, this.#draftTokens) ?? 0)
  }

  get #draftTokens(): number {
    return this.#speculation?.draftTokens ?? 0
  }

  #beginStretch(): void {
    const { decodes, pool, limits } = this.#state
    if (limits.staticBatching !== undefined) formBatch(this.#state, this.#draftTokens)
    planStep(this.#state, this.#plan)
    assert(this.#plan.decodeTokens + this.#plan.prefillTokens > 0, 'a step has work')
    const { pace } = this.#timeline
    this.#stepTime.paceOf(this.#plan, pace)
    if (this.#speculation !== undefined && this.#plan.decodeCount > 0) {
      pace.ticks += Math.round(draftUs(this.#speculation, this.#plan.decodeCount) * TICKS_PER_US)
    }
    this.#shares.begin(this.#plan, decodes.members(), pace.ticks)
    const isLeap = this.#plan.prefillTokens === 0 && this.#plan.isQueueSettled
    // The first step has its blocks; the others take theirs when they begin.
    this.#stretchSteps = isLeap ? decodes.leapSteps(pool.freeBlocks, exactStepsMax(pace)) : 1
  }

  #endStretch(): void {
    const steps = this.#stretchSteps
    const { decodes } = this.#state
    this.#shares.leap(steps - 1, decodes, this.#timeline.pace)
    this.#timeline.pass(steps)
    if (steps > 1) this.#state.pool.take(decodes.blocksForSteps(steps - 1))
    this.#stretchSteps = 0
    const events = this.#events
    const from = events.length
    applyStep(this.#state, this.#plan, this.#timeline.boundaryAt, { steps, events })
    for (let i = from; i < events.length; i++) {
      const event = events[i] as EngineEvent
      if (event.kind === 'finished') this.#sequences.delete(event.id)
    }
  }

  /** Applies the steps of the running stretch that are over at `now`; none of them ends a sequence. */
  #leapTo(now: Instant, isStartIncluded: boolean): void {
    const { decodes, pool, counters, done } = this.#state
    const steps = this.#timeline.stepsOverAt(now, this.#stretchSteps)
    if (steps === 0) return
    if (!isStartIncluded && this.#timeline.isEndOf(steps, now)) {
      // A boundary falls on this very instant: whoever comes now may still join the step that begins here.
      this.#stretchSteps = steps
      this.#endStretch()
      return
    }
    pool.take(decodes.blocksForSteps(steps))
    this.#shares.leap(steps, decodes, this.#timeline.pace)
    this.#timeline.pass(steps)
    counters.steps += steps
    countContext(this.#state, steps)
    counters.generationTokens += decodes.finishSteps(steps, true, done)
    this.#stretchSteps -= steps
  }

  #isIdle(): boolean {
    const { waiting, prefilling, decodes } = this.#state
    return this.#stretchSteps === 0 && waiting.count === 0 && prefilling.length === 0 && decodes.count === 0
  }

  #takeOut(sequence: Sequence): void {
    const { waiting, prefilling, decodes } = this.#state
    if (sequence.place === 'waiting') waiting.remove(sequence)
    else if (sequence.place === 'decoding') {
      decodes.leave(sequence)
      this.#shares.leave(sequence)
    } else {
      prefilling.splice(prefilling.indexOf(sequence), 1)
      const index = this.#plan.chunks.indexOf(sequence)
      if (index >= 0) this.#plan.chunks.splice(index, 1)
    }
    sequence.place = 'ended'
  }

  #refusalOf(spec: SequenceSpec): Submission | undefined {
    const { limits, waiting } = this.#state
    const blocks = blocksInAll(spec, limits, this.#draftTokens)
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

function assertLimits(limits: EngineLimits, speculation: Speculation | undefined): void {
  const { sequencesMax, tokenBudget, blockCount, blockTokens, prefixUnitTokens = blockTokens } = limits
  assert(sequencesMax >= 1 && blockCount >= 1 && blockTokens >= 1, 'an engine has places and blocks')
  const tokensEach = 1 + (speculation?.draftTokens ?? 0)
  assert(tokenBudget >= sequencesMax * tokensEach, 'the token budget has room for every decoding sequence')
  assert((limits.longPrefillTokens ?? 1) >= 1, 'a prompt gets at least a token of a step')
  assert((limits.staticBatching?.windowUs ?? 0) >= 0, 'a batch gathers for a time')
  if (speculation !== undefined) assertSpeculation(speculation)
  assert(prefixUnitTokens % blockTokens === 0, 'a prefix unit is a whole number of blocks')
}
