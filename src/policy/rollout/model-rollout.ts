import { Drift, type DriftVerdict } from './drift.ts'
import { type AttemptFact, Judge, type JudgeOptions, type JudgeTally, type JudgeVerdict } from './judge.ts'
import { Rollout, type RolloutChange, type RolloutMemory, type RolloutPhase } from './rollout.ts'
import type { ShadowRule } from './shadow.ts'
import { chooseRelease, type Pin, type ReleaseChoice, type Split, type SplitAsk } from './split.ts'

/**
 * Which release of one model does a request get, and what have its attempts shown?
 *
 * Puts the parts of this folder together: `split.ts` chooses, `judge.ts` watches both releases, `rollout.ts` goes up or
 * back, `drift.ts` watches what was promoted. Without a canary everybody gets the stable release, except who is pinned.
 * A canary that was promoted is the stable release of the next rollout.
 *
 * Deliberately not: it sends nothing and knows no pools; whether a release has a healthy replica is asked elsewhere.
 * Example: stable m@1, canary m@2 at 5 %. m@2 fails 15 times in a row: `observe` returns the change `rolled-back`, and
 * from then on `choose` says m@1 for everybody.
 */
export interface RolloutSettings {
  readonly model: string
  readonly stable: string
  readonly canary: string | undefined
  readonly stickyBy: 'session' | 'tenant'
  readonly steps: readonly number[]
  readonly dwellUs: number
  readonly pins: readonly Pin[]
  readonly judge: Partial<JudgeOptions>
  /** Requests that are also shown to a release that does not answer them. */
  readonly shadow?: ShadowRule
}

/** A change with what it was about, for the journal. */
export interface ModelRolloutChange extends RolloutChange {
  readonly model: string
  readonly stable: string
  readonly canary: string
  readonly step: number
  readonly canaryRatio: number
}

export interface RolloutView {
  readonly model: string
  readonly stable: string
  readonly canary: string | undefined
  readonly phase: RolloutPhase | 'none'
  readonly step: number
  readonly canaryRatio: number
  readonly isHeld: boolean
  readonly verdict: JudgeVerdict | undefined
  readonly drift: DriftVerdict | undefined
}

/** What a person may ask for by hand. */
export type RolloutCommand =
  | { readonly kind: 'start'; readonly canary: string }
  | { readonly kind: 'pause' | 'resume' | 'promote' | 'roll-back' | 'undo' }

/** For a restart and for other gateways. After a restart the judge's evidence begins anew at the step that was reached. */
export interface ModelRolloutMemory extends RolloutMemory {
  readonly stable: string
  readonly canary: string
  /** Absent in memories of earlier versions. */
  readonly epoch?: RolloutEpoch
}

/**
 * Which beginning, which judging and which step this is: instants of the changes that began them, the same at every
 * gateway. All are 0 for a canary of the configuration, which each gateway begins by itself. The beginning also names
 * the split, so that a session gets the same release at every gateway.
 */
export interface RolloutEpoch {
  readonly began: number
  readonly trial: number
  readonly step: number
}

/** What one gateway has seen of a trial, for the others. */
export interface TrialTally {
  readonly stable: string
  readonly canary: string
  readonly epoch: RolloutEpoch
  readonly tally: JudgeTally
}

/**
 * What may follow from the evidence: everything, where this gateway decides for all; only that a canary is taken back,
 * where nobody is known to decide; nothing, where another gateway decides.
 */
export type Judging = 'decide' | 'protect' | 'watch'

const FIRST_EPOCH: RolloutEpoch = { began: 0, trial: 0, step: 0 }

interface Running {
  readonly canary: string
  readonly rollout: Rollout
  judge: Judge
  epoch: RolloutEpoch
}

export class ModelRollout {
  readonly settings: RolloutSettings
  #stable: string
  #running: Running | undefined
  #split: Split
  readonly #drifts = new Map<string, Drift>()

  constructor(settings: RolloutSettings) {
    this.settings = settings
    this.#stable = settings.stable
    this.#split = this.#splitNow()
  }

  get stable(): string {
    return this.#stable
  }

  /** The release that is being tried, or was tried last. */
  get canary(): string | undefined {
    return this.#running?.canary
  }

  /** The release that is tried right now: its attempts are judged, and its failures are tried again on stable. */
  get judged(): string | undefined {
    return this.#running?.rollout.phase === 'canary' ? this.#running.canary : undefined
  }

  /** What answers when nothing is tried: the promoted release, or the stable one. */
  get serving(): string {
    return this.#running?.rollout.phase === 'promoted' ? this.#running.canary : this.#stable
  }

  isRolledBack(release: string): boolean {
    return this.#running?.rollout.phase === 'rolled-back' && this.#running.canary === release
  }

  choose(ask: SplitAsk): ReleaseChoice {
    return chooseRelease(this.#split, ask)
  }

  /** The canary of the configuration, as soon as the platform runs. */
  begin(now: number): ModelRolloutChange | undefined {
    const { canary } = this.settings
    return canary === undefined || this.#running !== undefined
      ? undefined
      : this.#start(now, canary, 'config', 'the configuration names a canary', FIRST_EPOCH)
  }

  /** One attempt is over. What a canary's attempt shows may end the rollout at once. */
  observe(now: number, release: string, fact: AttemptFact, may: Judging = 'decide'): ModelRolloutChange | undefined {
    const running = this.#running
    if (running === undefined || running.rollout.phase !== 'canary') return undefined
    if (release === this.#stable) running.judge.observeStable(fact)
    if (release !== running.canary) return undefined
    running.judge.observeCanary(fact)
    return this.#judge(now, running, may)
  }

  /** One item of the holdout set was answered; the canary's score too while one is tried. */
  observeHoldout(
    now: number,
    itemId: string,
    { score, canaryScore }: { readonly score: number; readonly canaryScore?: number | undefined },
    may: Judging = 'decide',
  ): ModelRolloutChange | undefined {
    const running = this.#running
    const drift = this.#driftOf(this.serving)
    drift.observe(itemId, score)
    if (canaryScore !== undefined && running?.rollout.phase === 'canary') {
      running.judge.observeHoldout(canaryScore, score)
      return this.#judge(now, running, may)
    }
    const { hasDrifted, because } = drift.verdict()
    if (may !== 'decide' || !hasDrifted || running?.rollout.phase !== 'promoted') return undefined
    return this.#tell(running, running.rollout.rollBack(now, 'drift', because))
  }

  /** Every tick: has the canary been at its step for long enough? */
  tick(now: number, may: Judging = 'decide'): ModelRolloutChange | undefined {
    return this.#running === undefined ? undefined : this.#judge(now, this.#running, may)
  }

  /** What this gateway has seen of the release that is tried right now. */
  tally(): TrialTally | undefined {
    const running = this.#running
    if (running?.rollout.phase !== 'canary') return undefined
    return { stable: this.#stable, canary: running.canary, epoch: running.epoch, tally: running.judge.tally() }
  }

  /** What the other gateways have seen: all of them, each time. Who speaks of another trial is not heard. */
  hear(others: readonly TrialTally[]): void {
    const running = this.#running
    if (running?.rollout.phase !== 'canary') return
    const { epoch, canary } = running
    const heard = others.filter(
      (other) =>
        other.stable === this.#stable &&
        other.canary === canary &&
        other.epoch.began === epoch.began &&
        other.epoch.trial === epoch.trial,
    )
    running.judge.hear(heard.map(({ tally, epoch: { step } }) => ({ tally, isSameStep: step === epoch.step })))
  }

  /** By hand. Undefined: there is nothing to change. */
  command(now: number, command: RolloutCommand, by: string, because: string): ModelRolloutChange | undefined {
    if (command.kind === 'start') return this.#start(now, command.canary, by, because)
    const running = this.#running
    if (running === undefined) return undefined
    return this.#tell(running, carryOut(running.rollout, command.kind, now, by, because))
  }

  /** Undefined while nothing was ever tried. */
  memory(): ModelRolloutMemory | undefined {
    if (this.#running === undefined) return undefined
    const { canary, rollout, epoch } = this.#running
    return { ...rollout.memory(), stable: this.#stable, canary, epoch }
  }

  /**
   * Goes on where another process was, unless the configuration names another canary by now. What was seen here of the
   * same trial stays.
   */
  recall(memory: ModelRolloutMemory): boolean {
    const { canary: wanted } = this.settings
    if (wanted !== undefined && wanted !== memory.canary) return false
    const { stable, canary, stepSince } = memory
    const epoch = memory.epoch ?? { began: stepSince, trial: stepSince, step: stepSince }
    const judge = this.#judgeOf(stable, canary, epoch)
    this.#stable = stable
    const rollout = this.#rolloutOf(stable, canary, epoch)
    rollout.recall(memory)
    this.#running = { canary, rollout, judge, epoch }
    this.#split = this.#splitNow()
    return true
  }

  view(): RolloutView {
    const { model } = this.settings
    const running = this.#running
    const drift = this.#drifts.get(this.serving)?.verdict()
    return {
      model,
      stable: this.#stable,
      canary: running?.canary,
      phase: running?.rollout.phase ?? 'none',
      step: running?.rollout.step ?? 0,
      canaryRatio: running?.rollout.canaryRatio ?? 0,
      isHeld: running?.rollout.isHeld ?? false,
      verdict: running?.judge.verdict(),
      drift,
    }
  }

  /** The present judge, where it is of the same trial. */
  #judgeOf(stable: string, canary: string, { began, trial, step }: RolloutEpoch): Judge {
    const { epoch, judge } = this.#running ?? {}
    const isSame = this.#stable === stable && this.#running?.canary === canary && epoch?.began === began
    if (judge === undefined || !isSame || epoch?.trial !== trial) return new Judge(this.settings.judge)
    if (epoch.step !== step) judge.beginStep()
    return judge
  }

  #start(
    now: number,
    canary: string,
    by: string,
    because: string,
    epoch: RolloutEpoch = { began: now, trial: now, step: now },
  ): ModelRolloutChange | undefined {
    if (this.judged !== undefined) return undefined
    const stable = this.serving
    if (canary === stable) return undefined
    this.#stable = stable
    const rollout = this.#rolloutOf(stable, canary, epoch)
    const running = { canary, rollout, judge: new Judge(this.settings.judge), epoch }
    this.#running = running
    return this.#tell(running, rollout.start(now, by, because))
  }

  #rolloutOf(stable: string, canary: string, { began }: RolloutEpoch): Rollout {
    const { model, stickyBy, steps, dwellUs, pins } = this.settings
    const name = `${model} ${canary} ${began === 0 ? 1 : began}`
    return new Rollout({ name, model, stable, canary, stickyBy, steps, dwellUs, pins })
  }

  #judge(now: number, running: Running, may: Judging): ModelRolloutChange | undefined {
    const { rollout, judge } = running
    if (may === 'watch' || rollout.phase !== 'canary' || rollout.isHeld) return undefined
    const verdict = judge.verdict()
    if (may === 'protect' && verdict.kind !== 'roll-back') return undefined
    return this.#tell(running, rollout.judge(now, verdict))
  }

  #tell(running: Running, change: RolloutChange | undefined): ModelRolloutChange | undefined {
    if (change === undefined) return undefined
    const { rollout, canary } = running
    // What a person has undone was judged wrongly in that person's eyes: the next verdict needs evidence of its own.
    if (change.kind === 'undone') {
      running.judge = new Judge(this.settings.judge)
      running.epoch = { ...running.epoch, trial: change.at, step: change.at }
    } else if (change.kind === 'promoted-step') {
      running.judge.beginStep()
      running.epoch = { ...running.epoch, step: change.at }
    }
    this.#split = this.#splitNow()
    const { step, canaryRatio } = rollout
    return { ...change, model: this.settings.model, stable: this.#stable, canary, step, canaryRatio }
  }

  #splitNow(): Split {
    const { model, stickyBy, pins } = this.settings
    const alone: Split = { name: model, stickyBy, shares: [{ release: this.#stable, weight: 1 }], pins }
    return this.#running?.rollout.split() ?? alone
  }

  #driftOf(release: string): Drift {
    let drift = this.#drifts.get(release)
    if (drift === undefined) {
      // Two at most: what serves now, and what did before it.
      if (this.#drifts.size >= 2) this.#drifts.delete(this.#drifts.keys().next().value as string)
      drift = new Drift()
      this.#drifts.set(release, drift)
    }
    return drift
  }
}

type ByHand = Exclude<RolloutCommand['kind'], 'start'>

function carryOut(rollout: Rollout, kind: ByHand, now: number, by: string, because: string): RolloutChange | undefined {
  switch (kind) {
    case 'pause':
      return rollout.isHeld ? undefined : rollout.hold(now, by, because)
    case 'resume':
      return rollout.isHeld ? rollout.resume(now, by, because) : undefined
    case 'promote':
      return rollout.promote(now, by, because)
    case 'roll-back':
      return rollout.rollBack(now, by, because)
    case 'undo':
      return rollout.undo(now, by, because)
  }
}
