import { assert } from '../../base/assert.ts'
import type { JudgeVerdict } from './judge.ts'
import type { Pin, Split } from './split.ts'

/**
 * How far has the new release got?
 *
 * A machine: a canary goes up its steps, or all the way back.
 *
 *   canary 5 % ─promote─▶ 25 % ─▶ 50 % ─▶ promoted            (each after `dwellUs` at least, when the judge agrees)
 *      │ roll back (judge, drift, hand)        │ undo (hand)
 *      ▼                                       ▼
 *   rolled-back ──────── undo (hand) ──────▶ the step before
 *
 * Whatever was decided, by the judge or by hand, can be undone by hand: every change keeps the state before it. After
 * an undo by hand the rollout is held: the judge goes on counting, and moves nothing until `resume`; otherwise it would
 * at once decide the same again. Changes carry who, why and the judge's numbers, for the journal.
 *
 * Deliberately not: it does not judge (`judge.ts`), does not choose (`split.ts`), and starts no replicas.
 * Example: steps 5, 25, 50 %: after 400 pairs and 10 minutes at 5 % the judge agrees: 25 %. Errors there: back to 0,
 * with the evidence. "It was the database": undo, 25 % again, held.
 */
export const ROLLOUT_DEFAULTS = {
  steps: [0.05, 0.25, 0.5] as readonly number[],
  /** Ten minutes: long enough for a leak or a cold cache to show. */
  dwellUs: 600_000_000,
}

export interface RolloutPlan {
  readonly name: string
  readonly model: string
  readonly stable: string
  readonly canary: string
  readonly stickyBy: 'session' | 'tenant'
  readonly steps: readonly number[]
  readonly dwellUs: number
  readonly pins: readonly Pin[]
}

export type RolloutPhase = 'canary' | 'promoted' | 'rolled-back'

interface RolloutState {
  readonly phase: RolloutPhase
  readonly step: number
}

/** Where a rollout stands, for a restart: what was undoable stays so. */
export interface RolloutMemory {
  readonly state: RolloutState
  readonly before: readonly RolloutState[]
  readonly stepSince: number
  readonly isHeld: boolean
}

export interface RolloutChange {
  readonly kind: 'started' | 'promoted-step' | 'promoted' | 'rolled-back' | 'undone' | 'held' | 'resumed'
  readonly at: number
  readonly by: string
  readonly because: string
  readonly split: Split
  /** The numbers behind it, where the judge decided. */
  readonly verdict: JudgeVerdict | undefined
}

/** Changes that can be undone, latest last: nobody undoes more than the plan has steps, twice. */
const UNDO_MAX = 32

export class Rollout {
  readonly #plan: RolloutPlan
  readonly #before: RolloutState[] = []
  #state: RolloutState = { phase: 'canary', step: 0 }
  #stepSince = 0
  #isHeld = false

  constructor(plan: RolloutPlan) {
    assert(plan.steps.length > 0, 'a rollout has a step')
    for (const [i, ratio] of plan.steps.entries())
      assert(ratio > (plan.steps[i - 1] ?? 0) && ratio < 1, 'steps rise between 0 and 1')
    this.#plan = plan
  }

  memory(): RolloutMemory {
    return { state: this.#state, before: [...this.#before], stepSince: this.#stepSince, isHeld: this.#isHeld }
  }

  /** Goes on where another process was. A step that the plan no longer has is its last one. */
  recall({ state, before, stepSince, isHeld }: RolloutMemory): void {
    const within = ({ phase, step }: RolloutState): RolloutState => ({
      phase,
      step: Math.min(Math.max(0, step), this.#plan.steps.length - 1),
    })
    this.#state = within(state)
    this.#before.splice(0, this.#before.length, ...before.slice(-UNDO_MAX).map(within))
    this.#stepSince = stepSince
    this.#isHeld = isHeld
  }

  get phase(): RolloutPhase {
    return this.#state.phase
  }

  get step(): number {
    return this.#state.step
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** What the canary gets now. */
  get canaryRatio(): number {
    const { phase, step } = this.#state
    if (phase === 'promoted') return 1
    return phase === 'rolled-back' ? 0 : (this.#plan.steps[step] as number)
  }

  split(): Split {
    const { name, stickyBy, stable, canary, pins } = this.#plan
    const ratio = this.canaryRatio
    const shares =
      ratio === 1 || ratio === 0
        ? [{ release: ratio === 1 ? canary : stable, weight: 1 }]
        : [
            { release: canary, weight: ratio },
            { release: stable, weight: 1 - ratio },
          ]
    // A release that was rolled back is out of reach of old pins too.
    return { name, stickyBy, shares, pins: ratio === 0 ? pins.filter(({ release }) => release !== canary) : pins }
  }

  start(now: number, by: string, because: string): RolloutChange {
    this.#stepSince = now
    return this.#change('started', now, by, because)
  }

  /** What the judge says, told every tick. Undefined: nothing changes. */
  judge(now: number, verdict: JudgeVerdict): RolloutChange | undefined {
    if (this.#state.phase !== 'canary' || this.#isHeld) return undefined
    if (verdict.kind === 'roll-back') return this.#rollBack(now, 'judge', verdict.because, verdict)
    if (verdict.kind !== 'promote' || now - this.#stepSince < this.#plan.dwellUs) return undefined
    return this.#promote(now, 'judge', verdict.because, verdict)
  }

  promote(now: number, by: string, because: string): RolloutChange | undefined {
    return this.#state.phase === 'promoted' ? undefined : this.#promote(now, by, because, undefined)
  }

  /** By hand, or because of drift: also after promotion. */
  rollBack(now: number, by: string, because: string): RolloutChange | undefined {
    return this.#state.phase === 'rolled-back' ? undefined : this.#rollBack(now, by, because, undefined)
  }

  /** Back to what was before the last change; held, so that the judge does not at once decide the same again. */
  undo(now: number, by: string, because: string): RolloutChange | undefined {
    const before = this.#before.pop()
    if (before === undefined) return undefined
    this.#state = before
    this.#stepSince = now
    this.#isHeld = true
    return this.#change('undone', now, by, because)
  }

  hold(now: number, by: string, because: string): RolloutChange {
    this.#isHeld = true
    return this.#change('held', now, by, because)
  }

  resume(now: number, by: string, because: string): RolloutChange {
    this.#isHeld = false
    return this.#change('resumed', now, by, because)
  }

  /** The earliest instant at which the judge may promote; undefined when it may not at all. */
  nextWakeupAt(): number | undefined {
    if (this.#state.phase !== 'canary' || this.#isHeld) return undefined
    return this.#stepSince + this.#plan.dwellUs
  }

  #promote(now: number, by: string, because: string, verdict: JudgeVerdict | undefined): RolloutChange {
    const { phase, step } = this.#state
    const next = phase === 'rolled-back' ? 0 : step + 1
    const isLast = next >= this.#plan.steps.length
    this.#move(now, isLast ? { phase: 'promoted', step } : { phase: 'canary', step: next })
    return this.#change(isLast ? 'promoted' : 'promoted-step', now, by, because, verdict)
  }

  #rollBack(now: number, by: string, because: string, verdict: JudgeVerdict | undefined): RolloutChange {
    this.#move(now, { phase: 'rolled-back', step: this.#state.step })
    return this.#change('rolled-back', now, by, because, verdict)
  }

  #move(now: number, state: RolloutState): void {
    this.#before.push(this.#state)
    if (this.#before.length > UNDO_MAX) this.#before.shift()
    this.#state = state
    this.#stepSince = now
  }

  #change(kind: RolloutChange['kind'], at: number, by: string, because: string, verdict?: JudgeVerdict): RolloutChange {
    return { kind, at, by, because, split: this.split(), verdict }
  }
}
