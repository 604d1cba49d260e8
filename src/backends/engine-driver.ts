import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import type { Engine, Submission } from '../engine/engine.ts'
import type { Abortion, EngineEvent } from '../engine/engine-event.ts'
import type { EngineView } from '../engine/engine-view.ts'
import type { SequenceSpec } from '../engine/sequence.ts'

/**
 * The bridge between an engine, which has no clock, and a clock, live or virtual: after every call it arms one timer
 * for the engine's next event and, when that comes, hands what has happened to whoever submitted the sequence.
 */
export type EngineListener = (event: EngineEvent) => void

export class EngineDriver {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #listeners = new Map<string, EngineListener>()
  #armedAt: Instant | undefined
  #disarm: CancelTimer | undefined

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  submit(spec: SequenceSpec, listener: EngineListener): Submission {
    const submission = this.#engine.submit(this.#clock.now(), spec)
    if (submission.kind === 'taken') this.#listeners.set(spec.id, listener)
    this.#arm()
    return submission
  }

  /** Frees the sequence at once, and says what it had come to; its listener hears nothing more. */
  abort(id: string): Abortion | undefined {
    if (!this.#listeners.delete(id)) return undefined
    const abortion = this.#engine.abort(this.#clock.now(), id)
    this.#arm()
    return abortion
  }

  /** The engine is gone: nobody hears of its sequences again. */
  abortAll(): void {
    for (const id of [...this.#listeners.keys()]) this.abort(id)
  }

  view(): EngineView {
    return this.#engine.view(this.#clock.now())
  }

  #arm(): void {
    const nextAt = this.#engine.nextEventAt()
    if (nextAt === this.#armedAt) return
    this.#disarm?.()
    this.#armedAt = nextAt
    this.#disarm = nextAt === undefined ? undefined : this.#clock.at(nextAt, () => this.#advance())
  }

  #advance(): void {
    this.#armedAt = undefined
    this.#disarm = undefined
    for (const event of this.#engine.advance(this.#clock.now())) {
      const listener = this.#listeners.get(event.id)
      if (event.kind === 'finished') this.#listeners.delete(event.id)
      listener?.(event)
    }
    this.#arm()
  }
}
