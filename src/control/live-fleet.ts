import { makePoolPolicies } from '../assembly/assemble.ts'
import type { EngineSettings } from '../assembly/engine-options.ts'
import type { LiveBackends } from '../assembly/live-backends.ts'
import type { Endpoint } from '../backends/discovery.ts'
import { type Clock, secondsToUs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import { engineIdOf } from '../config/engine-ids.ts'
import type { PoolSetup } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import type { ChangeReason, FleetAnswer } from '../lifecycle/fleet/change-fleet.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { type LiveDiscovery, makeDiscovery } from './live-discovery.ts'
import { PoolDiscovery } from './pool-discovery.ts'

/**
 * The connections of the running fleet. A pool or replica that is added gets its backend and its discovery here; the
 * lifecycle then changes what it decides with (`change-fleet.ts`).
 */
export interface LiveFleetParts {
  readonly engine: EngineSettings
  readonly clock: Clock
  readonly platform: Platform
  readonly backends: LiveBackends
  /** Called when a discovery cannot reach its source. */
  readonly onFailure: (where: string, because: string) => void
  /** Whether an administrator has drained this replica. */
  readonly isDrained: (replicaId: string) => boolean
}

/** The gateway starts after this time, even if a name server has not answered. */
const FIRST_LIST_US = secondsToUs(3)

/** A source that fails is asked again every few seconds; the same failure is reported once a minute. */
const FAILURE_TOLD_US = secondsToUs(60)

const DISCOVERY = 'discovery'

interface Watch {
  readonly live: LiveDiscovery
  readonly watch: PoolDiscovery
}

export class LiveFleet {
  readonly #parts: LiveFleetParts
  readonly #watches = new Map<string, Watch>()

  constructor(parts: LiveFleetParts) {
    this.#parts = parts
  }

  /** Starts the discoveries of these pools; resolves when each has given its first list, or after `FIRST_LIST_US`. */
  async follow(setups: readonly PoolSetup[]): Promise<void> {
    const started = setups.flatMap((setup) => this.#watch(setup, true) ?? [])
    await Promise.all(started.map((watch) => watch.first(FIRST_LIST_US)))
  }

  /** Adds a pool with its replicas. `problemOf` must have been asked before: it loads what the backends need. */
  addPool(setup: PoolSetup, reason: ChangeReason, isFounding = false): FleetAnswer {
    const { engine, clock, platform, backends } = this.#parts
    backends.add(setup, setup.pool.replicas)
    const known = makePoolPolicies(engine, setup, platform.policies.tightestPromise, clock.now())
    const answer = platform.changeFleet({ kind: 'add-pool', known }, reason, isFounding)
    if (answer.kind === 'changed') {
      for (const { id } of setup.pool.replicas) this.#keepDrained(id)
      this.#watch(setup, isFounding)
    } else for (const replica of setup.pool.replicas) if (!this.#isKnown(replica)) backends.forget(replica)
    return answer
  }

  /** The reason why this pool could not run here, if there is one. Only what `prepare` has loaded stays loaded. */
  async problemOf(setup: PoolSetup): Promise<string | undefined> {
    const { backends } = this.#parts
    try {
      await backends.prepare(setup)
      backends.add(setup, setup.pool.replicas)
      // A profile may be a file that cannot be read.
      makePoolPolicies(
        this.#parts.engine,
        setup,
        this.#parts.platform.policies.tightestPromise,
        this.#parts.clock.now(),
      )
      const discover = 'discover' in setup.backend ? setup.backend.discover : undefined
      if (discover !== undefined) {
        const { clock } = this.#parts
        await makeDiscovery(discover, { poolId: setup.pool.id, clock, onFailure: () => {} }).close()
      }
      return undefined
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return error.problems.join(' ')
    } finally {
      for (const replica of setup.pool.replicas) if (!this.#isKnown(replica)) backends.forget(replica)
    }
  }

  removePool(poolId: string, reason: ChangeReason): FleetAnswer {
    void this.#unwatch(poolId)
    return this.#parts.platform.changeFleet({ kind: 'remove-pool', poolId }, reason)
  }

  /** Adds a replica to a pool that runs: what its backend needs was loaded with the pool. */
  addReplica(setup: PoolSetup, replica: Replica, reason: ChangeReason, isFounding = false): FleetAnswer {
    const { platform, backends } = this.#parts
    if (!this.#isKnown(replica)) backends.add(setup, [replica])
    const answer = platform.changeFleet({ kind: 'add-replica', replica }, reason, isFounding)
    if (answer.kind === 'refused' && !this.#isKnown(replica)) backends.forget(replica)
    if (answer.kind === 'changed') this.#keepDrained(replica.id)
    return answer
  }

  #keepDrained(replicaId: string): void {
    const reason = { by: 'registry', because: 'an administrator has drained it' }
    if (this.#parts.isDrained(replicaId)) this.#parts.platform.changeFleet({ kind: 'drain-replica', replicaId }, reason)
  }

  removeReplica(replicaId: string, reason: ChangeReason): FleetAnswer {
    return this.#parts.platform.changeFleet({ kind: 'remove-replica', replicaId }, reason)
  }

  async close(): Promise<void> {
    const watches = [...this.#watches.keys()].map((poolId) => this.#unwatch(poolId))
    await Promise.all(watches)
  }

  #isKnown(replica: Replica): boolean {
    return this.#parts.platform.policies.fleet.replica(replica.id) !== undefined
  }

  #watch(setup: PoolSetup, isFounding: boolean): PoolDiscovery | undefined {
    const { backend, pool } = setup
    if (backend.kind === 'simulated' || backend.kind === 'peer' || backend.discover === undefined) return undefined
    const { clock, onFailure } = this.#parts
    const where = `${DISCOVERY} of ${pool.id}`
    let told = { because: '', at: 0 }
    const live = makeDiscovery(backend.discover, {
      poolId: pool.id,
      clock,
      onFailure(because) {
        if (because === told.because && clock.now() < told.at + FAILURE_TOLD_US) return
        told = { because, at: clock.now() }
        onFailure(where, because)
      },
    })
    const watch = new PoolDiscovery(clock, live.discovery, this.#changesOf(setup, isFounding))
    this.#watches.set(pool.id, { live, watch })
    return watch
  }

  async #unwatch(poolId: string): Promise<void> {
    const found = this.#watches.get(poolId)
    this.#watches.delete(poolId)
    found?.watch.stop()
    await found?.live.close()
  }

  /** Replicas of the first list ran before this process did: they start without a slow start. */
  #changesOf(setup: PoolSetup, isFounding: boolean) {
    const { platform } = this.#parts
    const { pool } = setup
    const idOf = (endpointId: string): string => `${pool.id}-${endpointId}`
    const reason = (because: string): ChangeReason => ({ by: DISCOVERY, because })
    // Replicas that this discovery added. An address that the configuration lists too is not drained or removed by it.
    const own = new Set<string>()
    const change = (kind: 'drain-replica' | 'undrain-replica', endpointId: string, because: string): void => {
      if (kind === 'undrain-replica' && this.#parts.isDrained(idOf(endpointId))) return
      if (own.has(endpointId)) platform.changeFleet({ kind, replicaId: idOf(endpointId) }, reason(because))
    }
    const startedAt = this.#parts.clock.now()
    const isFirst = (): boolean => isFounding && this.#parts.clock.now() < startedAt + FIRST_LIST_US
    return {
      add: ({ id, url }: Endpoint): void => {
        const { model, releaseId, region } = pool
        const engineId = engineIdOf(setup, url)
        const named = engineId === undefined ? {} : { engineId }
        const replica: Replica = { id: idOf(id), poolId: pool.id, model, releaseId, region, ...named }
        const known: PoolSetup = { ...setup, urls: new Map([[replica.id, url]]) }
        const answer = this.addReplica(known, replica, reason('discovery lists it'), isFirst())
        if (answer.kind === 'changed') own.add(id)
      },
      drain: (id: string): void => change('drain-replica', id, 'discovery says that it is terminating'),
      undrain: (id: string): void => change('undrain-replica', id, 'discovery says that it is ready again'),
      remove: (id: string, because: string): void => {
        if (own.delete(id)) this.removeReplica(idOf(id), reason(because))
      },
      isAway: (id: string): boolean => {
        const kind = platform.policies.health.kindOf(idOf(id))
        return kind === undefined || kind === 'away'
      },
    }
  }
}
