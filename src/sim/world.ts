import { EngineDriver } from '../backends/engine-driver.ts'
import { type Scripts, SimulatedBackend } from '../backends/simulated.ts'
import type { Clock } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import type { Lease, Replica } from '../domain/fleet.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { type FullWorkPrices, fullWorkPrices } from '../engine/full-work.ts'
import type { Backend, Backends, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import { BestHits } from './best-hits.ts'
import type { ClientScripts } from './clients/scripts.ts'
import { FATE_SEED, GOOD, RELEASE_BROKEN, TraitScripts, type Traits } from './clients/traits.ts'
import { StretchedClock } from './stretched-clock.ts'

/**
 * The simulated fleet: the backend and the engine that run live, on virtual time, with faults that can be switched on
 * for each replica.
 */
export class SimulatedFleet implements Backends {
  readonly bestHits = new BestHits()
  readonly #replicas = new Map<string, SimulatedReplica>()
  readonly #tellsEveryToken: boolean

  constructor(
    clock: Clock,
    replicas: ReadonlyArray<{ readonly replica: Replica; readonly options: EngineOptions }>,
    scripts: ClientScripts,
    tellsEveryToken = false,
  ) {
    this.#tellsEveryToken = tellsEveryToken
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
        // An answer with a text, if an empty one, is handed over token by token.
        return this.#tellsEveryToken
          ? { ...made, scripts: made.scripts.map((script) => ({ ...script, textBetween })) }
          : made
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

const textBetween = (): string => ''

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

  engineTimeOf(lease: Lease): EngineTime | undefined {
    return this.#backend.engineTimeOf(lease)
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
