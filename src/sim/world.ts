import { cacheNameOf, type Scripts, SimulatedBackend } from '../backends/simulated.ts'
import type { Clock } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import type { Lease, Replica } from '../domain/fleet.ts'
import { cacheScopeOf } from '../domain/request.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { type FullWorkPrices, fullWorkPrices } from '../engine/full-work.ts'
import type { Backend, Backends, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import { BestHits } from './best-hits.ts'
import type { ClientScripts } from './clients/scripts.ts'
import { FATE_SEED, GOOD, RELEASE_BROKEN, TraitScripts, type Traits } from './clients/traits.ts'
import { SimulatedEngine } from './simulated-engine.ts'

/**
 * The simulated fleet: the backend and the engine that run live, on virtual time, with faults that can be switched on
 * for each replica.
 */
export class SimulatedFleet implements Backends {
  readonly bestHits = new BestHits()
  readonly #replicas = new Map<string, SimulatedReplica>()
  /** By name, those that have one. */
  readonly #engines = new Map<string, SimulatedEngine>()
  readonly #tellsEveryToken: boolean
  readonly #scripts: ClientScripts

  constructor(
    clock: Clock,
    replicas: ReadonlyArray<{ readonly replica: Replica; readonly options: EngineOptions }>,
    scripts: ClientScripts,
    tellsEveryToken = false,
  ) {
    this.#tellsEveryToken = tellsEveryToken
    this.#scripts = scripts
    for (const { replica, options } of replicas) {
      this.#replicas.set(replica.id, this.#make(clock, replica, options))
    }
  }

  /** Replicas that name the same engine are one. */
  #make(clock: Clock, replica: Replica, options: EngineOptions): SimulatedReplica {
    const { engineId } = replica
    const known = engineId === undefined ? undefined : this.#engines.get(engineId)
    const engine = known ?? new SimulatedEngine(clock, options)
    if (engineId !== undefined) this.#engines.set(engineId, engine)
    return new SimulatedReplica(replica, engine, this.#watched(this.#scripts))
  }

  /** One that is ordered while the clock runs, and is not up yet. */
  add(clock: Clock, replica: Replica, options: EngineOptions): SimulatedReplica {
    const added = this.#make(clock, replica, options)
    added.crash()
    this.#replicas.set(replica.id, added)
    return added
  }

  /** Observes every prompt sent to an engine. */
  #watched(scripts: ClientScripts): Scripts {
    return {
      scriptsFor: (request, plan) => {
        const made = scripts.scriptsFor(request, plan)
        if (made.kind !== 'made') return made
        for (const { prefixHashes, promptTokens } of made.scripts)
          this.bestHits.sent(cacheScopeOf(request), prefixHashes, promptTokens)
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

  /** One replica of every engine: what engines did is counted once. */
  *engines(): Iterable<SimulatedReplica> {
    const seen = new Set<string>()
    for (const one of this.#replicas.values()) {
      const { engineId } = one.replica
      if (engineId !== undefined && seen.has(engineId)) continue
      if (engineId !== undefined) seen.add(engineId)
      yield one
    }
  }
}

const textBetween = (): string => ''

/** Microseconds that a simulated engine takes for a question of one token. */
const QUESTION_US = 20_000

/** A replica that can crash, hang and slow down, alone or with the replicas of other pools that are the same engine. */
export class SimulatedReplica implements Backend {
  readonly replica: Replica
  readonly #engine: SimulatedEngine
  readonly #scripts: Scripts
  #backend: SimulatedBackend
  #traits: Traits = GOOD
  #isFrozen = false
  readonly #fate: Rng

  #fullWorkPrices: FullWorkPrices | undefined

  constructor(replica: Replica, engine: SimulatedEngine, scripts: Scripts) {
    this.replica = replica
    this.#engine = engine
    this.#scripts = new TraitScripts(
      scripts,
      () => this.#fate.next() < this.#traits.refusalRatio,
      () => this.#fate.next() < this.#traits.wrongRatio,
    )
    this.#fate = Rng.stream(FATE_SEED, replica.id)
    this.#backend = this.#makeBackend()
    engine.whenLost.push(() => {
      this.#backend.lose('connection reset')
      this.#backend = this.#makeBackend()
    })
  }

  #makeBackend(): SimulatedBackend {
    return new SimulatedBackend(this.#engine.driver, this.#scripts, this.fullWorkPrices, cacheNameOf(this.replica))
  }

  generate(call: Call): Promise<Ending> {
    if (!this.#engine.isUp) return Promise.resolve({ kind: 'lost', because: 'connection refused', isUnreachable: true })
    if (this.#fate.next() < this.#traits.errorRatio) return Promise.resolve(RELEASE_BROKEN)
    return this.#backend.generate(call)
  }

  engineTimeOf(lease: Lease): EngineTime | undefined {
    return this.#backend.engineTimeOf(lease)
  }

  probe(replica: Replica): Promise<ReplicaReport> {
    if (!this.#engine.isUp) return Promise.resolve({ isReady: false, because: 'connection refused' })
    if (this.#engine.clock.isStopped && !this.#isFrozen)
      return Promise.resolve({ isReady: false, because: 'no answer to the probe' })
    return this.#backend.probe(replica)
  }

  /** One token takes about a step, on the engine's own clock: a frozen engine answers when it thaws. */
  async ask(): Promise<boolean> {
    await this.#engine.clock.sleep(QUESTION_US)
    return this.#engine.isUp
  }

  /** The replica loses all its sequences and its cache. */
  crash(): void {
    this.#engine.crash()
  }

  recover(): void {
    this.#engine.isUp = true
    this.#isFrozen = false
    this.#traits = GOOD
    this.#engine.clock.setPace(1)
  }

  /** Makes the replica slower by this factor; Infinity hangs it. */
  slowDown(factor: number): void {
    this.#engine.clock.setPace(1 / factor)
  }

  /** The replica stays up, answers its probes and makes no progress. */
  freeze(): void {
    this.#isFrozen = true
    this.#engine.clock.setPace(0)
  }

  /** Makes the replica worse in one respect until it recovers. */
  misbehave(traits: Partial<Traits>): void {
    this.#traits = { ...GOOD, ...traits }
  }

  /** The present engine. */
  get engine(): EngineView {
    return this.#engine.driver.view()
  }

  /** What work costs on this replica's GPU when it is full. */
  get fullWorkPrices(): FullWorkPrices {
    this.#fullWorkPrices ??= fullWorkPrices(this.#engine.options)
    return this.#fullWorkPrices
  }

  assertInvariants(): void {
    this.#engine.assertInvariants()
  }

  views(): readonly EngineView[] {
    return this.#engine.views()
  }
}
