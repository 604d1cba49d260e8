import { EngineDriver } from '../backends/engine-driver.ts'
import type { Clock } from '../base/clock.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { StretchedClock } from './stretched-clock.ts'

/**
 * One simulated engine, which may be the replica of several pools: then the sequences of all their models share its steps,
 * its memory and its fate. The totals include what the engine did before a crash.
 */
export class SimulatedEngine {
  readonly clock: StretchedClock
  readonly #options: EngineOptions
  #engine: Engine
  #driver: EngineDriver
  #buried: EngineView[] = []
  isUp = true
  /** Called when the engine was lost and another runs in its place. One for each replica. */
  readonly whenLost: Array<() => void> = []

  constructor(clock: Clock, options: EngineOptions) {
    this.clock = new StretchedClock(clock)
    this.#options = options
    this.#engine = new Engine(options)
    this.#driver = new EngineDriver(this.#engine, this.clock)
  }

  get options(): EngineOptions {
    return this.#options
  }

  get driver(): EngineDriver {
    return this.#driver
  }

  /** The engine loses all its sequences and its cache. */
  crash(): void {
    this.isUp = false
    this.#buried.push(this.#driver.view())
    this.#engine = new Engine(this.#options)
    this.#driver = new EngineDriver(this.#engine, this.clock)
    for (const tell of this.whenLost) tell()
  }

  assertInvariants(): void {
    this.#engine.assertInvariants()
  }

  views(): readonly EngineView[] {
    return [...this.#buried, this.#driver.view()]
  }
}
