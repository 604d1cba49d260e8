import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import type { BatchItem, BatchSubmission, BatchView } from '../engine/batch-engine.ts'
import type { Submission } from '../engine/engine.ts'
import type { Abortion, EngineEvent } from '../engine/engine-event.ts'
import type { EngineView } from '../engine/engine-view.ts'
import type { SequenceSpec } from '../engine/sequence.ts'

/**
 * The driver connects an engine, which has no clock, to a clock, live or virtual. After every call the driver arms one
 * timer for the engine's next event; when the timer fires, it passes the events to the listeners of their sequences.
 *
 * A listener may submit and abort while it is called; it must not throw.
 */
export type EngineListener = (event: EngineEvent) => void

/** What the generating engine and the batching engine have in common. */
interface DrivenEngine<Spec, View, Taken, Left> {
  submit(now: Instant, spec: Spec): Taken
  abort(now: Instant, id: string): Left
  nextEventAt(): Instant | undefined
  advance(now: Instant): readonly EngineEvent[]
  view(now: Instant): View
  /** Absent from engines that answer in batches. */
  engineTime?(now: Instant, id: string): EngineTime | undefined
}

/** Observes the whole engine, as a server's metrics do. */
export interface EngineWatcher<Spec = SequenceSpec, View = EngineView> {
  submitted(spec: Spec, at: Instant): void
  /** All events since the last call, and the engine's present state. */
  advanced(now: Instant, events: readonly EngineEvent[], view: View): void
  aborted(id: string): void
}

interface Named {
  readonly id: string
}

interface TakenOrNot {
  readonly kind: 'taken' | 'refused'
}

/** Drives an engine that answers without streaming. */
export type BatchDriver = EngineDriver<BatchItem, BatchView, BatchSubmission, boolean>

export class EngineDriver<
  Spec extends Named = SequenceSpec,
  View = EngineView,
  Taken extends TakenOrNot = Submission,
  Left = Abortion | undefined,
> {
  readonly #engine: DrivenEngine<Spec, View, Taken, Left>
  readonly #clock: Clock
  readonly #watcher: EngineWatcher<Spec, View> | undefined
  readonly #listeners = new Map<string, EngineListener>()
  #armedAt: Instant | undefined
  #disarm: CancelTimer | undefined

  constructor(engine: DrivenEngine<Spec, View, Taken, Left>, clock: Clock, watcher?: EngineWatcher<Spec, View>) {
    this.#engine = engine
    this.#clock = clock
    this.#watcher = watcher
  }

  submit(spec: Spec, listener: EngineListener): Taken {
    const now = this.#clock.now()
    const submission = this.#engine.submit(now, spec)
    if (submission.kind === 'taken') {
      this.#listeners.set(spec.id, listener)
      this.#watcher?.submitted(spec, now)
    }
    this.#arm()
    return submission
  }

  /** Frees the sequence at once and returns the tokens computed so far; its listener hears nothing more. */
  abort(id: string): Left | undefined {
    if (!this.#listeners.delete(id)) return undefined
    const abortion = this.#engine.abort(this.#clock.now(), id)
    this.#watcher?.aborted(id)
    this.#arm()
    return abortion
  }

  /** What a running sequence has taken of the engine's time so far. */
  engineTime(id: string): EngineTime | undefined {
    return this.#engine.engineTime?.(this.#clock.now(), id)
  }

  view(): View {
    return this.#engine.view(this.#clock.now())
  }

  /** One function for all timers, because an engine is woken twice for every answer. */
  readonly #wakeUp = (): void => this.#advance()

  #arm(): void {
    const nextAt = this.#engine.nextEventAt()
    if (nextAt === this.#armedAt) return
    this.#disarm?.()
    this.#armedAt = nextAt
    this.#disarm = nextAt === undefined ? undefined : this.#clock.at(nextAt, this.#wakeUp)
  }

  #advance(): void {
    this.#armedAt = undefined
    this.#disarm = undefined
    const now = this.#clock.now()
    const events = this.#engine.advance(now)
    this.#watcher?.advanced(now, events, this.#engine.view(now))
    for (const event of events) {
      const listener = this.#listeners.get(event.id)
      if (event.kind === 'finished') this.#listeners.delete(event.id)
      listener?.(event)
    }
    this.#arm()
  }
}
