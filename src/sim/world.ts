import { EngineDriver } from '../backends/engine-driver.ts'
import { type Scripts, SimulatedBackend } from '../backends/simulated.ts'
import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { Replica } from '../domain/fleet.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { type FullWorkPrices, fullWorkPrices } from '../engine/full-work.ts'
import type { Backend, Backends, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import { BestHits } from './best-hits.ts'
import type { ClientScripts } from './clients/scripts.ts'
import { FATE_SEED, GOOD, RELEASE_BROKEN, TraitScripts, type Traits } from './clients/traits.ts'

/**
 * The simulated fleet: the backend and the engine that run live, on virtual time, with faults that can be switched on
 * for each replica.
 */
export class SimulatedFleet implements Backends {
  readonly bestHits = new BestHits()
  readonly #replicas = new Map<string, SimulatedReplica>()

  constructor(
    clock: Clock,
    replicas: ReadonlyArray<{ readonly replica: Replica; readonly options: EngineOptions }>,
    scripts: ClientScripts,
  ) {
    for (const { replica, options } of replicas) {
      this.#replicas.set(replica.id, new SimulatedReplica(clock, replica, options, this.#watched(scripts)))
    }
  }

  /** Observes every prompt sent to an engine. */
  #watched(scripts: ClientScripts): Scripts {
    return {
      scriptsFor: (request, plan) => {
        const made = scripts.scriptsFor(request, plan)
        if (made.kind !== 'made') return made
        for (const { prefixHashes, promptTokens } of made.scripts)
          this.bestHits.sent(request.tenant.id, prefixHashes, promptTokens)
        return made
      },
    }
  }

  of(replica: Replica): SimulatedReplica {
    return this.replica(replica.id)
  }

  has(replica: Replica): boolean {
    return this.#replicas.has(replica.id)
  }

  replica(id: string): SimulatedReplica {
    const found = this.#replicas.get(id)
    if (found === undefined) throw new Error(`no replica is called ${id}`)
    return found
  }

  all(): IterableIterator<SimulatedReplica> {
    return this.#replicas.values()
  }
}

/** A replica that can crash, hang and slow down. The totals include what an engine did before a crash. */
export class SimulatedReplica implements Backend {
  readonly replica: Replica
  readonly #clock: StretchedClock
  readonly #options: EngineOptions
  readonly #scripts: Scripts
  #engine: Engine
  #driver: EngineDriver
  #backend: SimulatedBackend
  #isUp = true
  #traits: Traits = GOOD
  readonly #fate: Rng
  #buried: EngineView[] = []

  #fullWorkPrices: FullWorkPrices | undefined

  constructor(clock: Clock, replica: Replica, options: EngineOptions, scripts: Scripts) {
    this.replica = replica
    this.#clock = new StretchedClock(clock)
    this.#options = options
    this.#scripts = new TraitScripts(
      scripts,
      () => this.#fate.next() < this.#traits.refusalRatio,
      () => this.#fate.next() < this.#traits.wrongRatio,
    )
    this.#fate = Rng.stream(FATE_SEED, replica.id)
    this.#engine = new Engine(options)
    this.#driver = new EngineDriver(this.#engine, this.#clock)
    this.#backend = new SimulatedBackend(this.#driver, this.#scripts, this.fullWorkPrices)
  }

  generate(call: Call): Promise<Ending> {
    if (!this.#isUp) return Promise.resolve({ kind: 'lost', because: 'connection refused' })
    if (this.#fate.next() < this.#traits.errorRatio) return Promise.resolve(RELEASE_BROKEN)
    return this.#backend.generate(call)
  }

  probe(replica: Replica): Promise<ReplicaReport> {
    if (!this.#isUp) return Promise.resolve({ isReady: false, because: 'connection refused' })
    if (this.#clock.isStopped) return Promise.resolve({ isReady: false, because: 'no answer to the probe' })
    return this.#backend.probe(replica)
  }

  /** The replica loses all its sequences and its cache. */
  crash(): void {
    this.#isUp = false
    this.#buried.push(this.#driver.view())
    this.#backend.lose('connection reset')
    this.#engine = new Engine(this.#options)
    this.#driver = new EngineDriver(this.#engine, this.#clock)
    this.#backend = new SimulatedBackend(this.#driver, this.#scripts, this.fullWorkPrices)
  }

  recover(): void {
    this.#isUp = true
    this.#traits = GOOD
    this.#clock.setPace(1)
  }

  /** Makes the replica slower by this factor; Infinity hangs it. */
  slowDown(factor: number): void {
    this.#clock.setPace(1 / factor)
  }

  /** Makes the replica worse in one respect until it recovers. */
  misbehave(traits: Partial<Traits>): void {
    this.#traits = { ...GOOD, ...traits }
  }

  /** The present engine. */
  get engine(): EngineView {
    return this.#driver.view()
  }

  /** What work costs on this replica's GPU when it is full. */
  get fullWorkPrices(): FullWorkPrices {
    this.#fullWorkPrices ??= fullWorkPrices(this.#options)
    return this.#fullWorkPrices
  }

  assertInvariants(): void {
    this.#engine.assertInvariants()
  }

  views(): readonly EngineView[] {
    return [...this.#buried, this.#driver.view()]
  }
}

/**
 * A clock for one engine that can run slower than the world's, or stand still, which is how a slow or hanging GPU looks
 * from outside. Instants given to `at` are the engine's own.
 */
class StretchedClock implements Clock {
  readonly #world: Clock
  #pace = 1
  #worldAnchor: Instant
  #ownAnchor: Instant
  readonly #timers = new Set<{ at: Instant; fn: () => void; cancel: CancelTimer }>()

  constructor(world: Clock) {
    this.#world = world
    this.#worldAnchor = world.now()
    this.#ownAnchor = this.#worldAnchor
  }

  get isStopped(): boolean {
    return this.#pace === 0
  }

  now(): Instant {
    return this.#ownAnchor + Math.floor((this.#world.now() - this.#worldAnchor) * this.#pace)
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    // The usual case: nothing is stretched, and the world's own timer is enough.
    const timer = { at: instant, fn, cancel: () => {} }
    this.#timers.add(timer)
    this.#arm(timer)
    return () => {
      this.#timers.delete(timer)
      timer.cancel()
    }
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(this.now() + durationUs, resolve)
    })
  }

  setPace(pace: number): void {
    const own = this.now()
    this.#worldAnchor = this.#world.now()
    this.#ownAnchor = own
    this.#pace = Number.isFinite(pace) ? pace : 1
    for (const timer of this.#timers) {
      timer.cancel()
      this.#arm(timer)
    }
  }

  /**
   * Rounding of × 1 ÷ 1.3 and back loses a little: a timer that fires must find its instant reached, or it fires for
   * ever.
   */
  #catchUpTo(own: Instant): void {
    if (this.now() >= own) return
    this.#worldAnchor = this.#world.now()
    this.#ownAnchor = own
  }

  #arm(timer: { at: Instant; fn: () => void; cancel: CancelTimer }): void {
    if (this.#pace === 0) {
      timer.cancel = () => {}
      return
    }
    const worldAt = this.#worldAnchor + Math.ceil((timer.at - this.#ownAnchor) / this.#pace)
    timer.cancel = this.#world.at(worldAt, () => {
      this.#timers.delete(timer)
      this.#catchUpTo(timer.at)
      timer.fn()
    })
  }
}
