import { type BatchDriver, EngineDriver } from '../backends/engine-driver.ts'
import { HttpOipBackend } from '../backends/http-oip.ts'
import type { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { HttpPeerBackend } from '../backends/http-peer.ts'
import { loadO200kTokenizer } from '../backends/o200k-tokenizer.ts'
import { PromptReader } from '../backends/prompt-reader.ts'
import { cacheNameOf, SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import { isSimulatedWhole, SimulatedResults, simulatedMetadata } from '../backends/simulated-results.ts'
import { SimulatedText } from '../backends/simulated-text.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig, Config } from '../config/schema.ts'
import { type PoolSetup, profileOf, toPools } from '../config/to-domain.ts'
import type { ModelKind, Replica } from '../domain/fleet.ts'
import { BatchEngine } from '../engine/batch-engine.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import { fullWorkPrices } from '../engine/full-work.ts'
import type { Backend, Backends } from '../lifecycle/ports.ts'
import type { OipMetadata } from '../wire/oip.ts'
import { batchOptionsOf } from './batch-options.ts'
import { type EngineSettings, engineOptionsOf } from './engine-options.ts'
import { type HttpParts, makeHttpBackend } from './http-backends.ts'

/** The backends of a configuration, one per replica. */
export interface LiveBackends extends Backends {
  /** Loads what a pool of this kind needs, once for all pools. */
  prepare(setup: PoolSetup): Promise<void>
  /** Adds backends for these replicas; existing ones stay as they are. */
  add(setup: PoolSetup, replicas: readonly Replica[]): void
  /** Sets the context of a model, also for its running engines. */
  putModel(model: { readonly name: string; readonly contextTokensMax: number }): void
  dropModel(name: string): void
  forget(replica: Replica): void
  /** From the next call on, the pool's replicas are called with this key; those that are added later, too. */
  useKey(poolId: string, apiKey: string | undefined): void
  /** The pool is gone: a pool of the same name brings its own key. */
  forgetKey(poolId: string): void
  /** Whether o200k counts the model's tokens as its engines do: true of simulated engines alone. */
  hasKnownTokenizer(model: string): boolean
  /** Names and shapes of the model's tensors; undefined when no replica reports them. */
  metadataOf(model: string): Promise<OipMetadata | undefined>
  close(): Promise<void>
}

/** `saltOf`: the salt by which engines keep the prompts of a cache scope apart. */
export async function makeLiveBackends(
  config: Config,
  clock: Clock,
  saltOf?: (scope: string) => string,
): Promise<LiveBackends> {
  const backends = new BackendsByReplica(config, config.regions.local ?? '', { clock, saltOf })
  for (const model of config.models) backends.putModel(model)
  for (const setup of toPools(config)) {
    await backends.prepare(setup)
    backends.add(setup, setup.pool.replicas)
  }
  return backends
}

interface KnownBackend {
  readonly backend: Backend
  readonly poolId: string
  readonly model: string
  readonly kind: ModelKind
  readonly engineId: string | undefined
}

class BackendsByReplica implements LiveBackends {
  readonly #engine: EngineSettings
  readonly #clock: Clock
  readonly #http: HttpParts
  readonly #byReplica = new Map<string, KnownBackend>()
  /** Simulated engines that have a name, by it; gone with the last replica that names them. */
  readonly #engines = new Map<string, EngineDriver>()
  readonly #peers: PeerBackends
  /** Keys that changed while their pools ran; one for each pool at most. */
  readonly #keys = new Map<string, string | undefined>()
  /** The context of each model that the configuration or the registry names. */
  readonly #contextTokensMax = new Map<string, number>()
  #reader: PromptReader | undefined

  constructor(engine: EngineSettings, region: string, http: HttpParts) {
    this.#engine = engine
    this.#http = http
    this.#clock = http.clock
    this.#peers = new PeerBackends(region, http.clock)
  }

  async prepare({ backend }: PoolSetup): Promise<void> {
    // A tokenizer takes a hundred megabytes: a gateway in front of real engines does not load it.
    if (backend.kind === 'simulated') this.#reader ??= await makePromptReader(this.#longestContext())
  }

  add(setup: PoolSetup, replicas: readonly Replica[]): void {
    const { backend, kind, pool } = setup
    for (const replica of replicas) {
      if (this.#byReplica.has(replica.id)) continue
      const made =
        backend.kind === 'peer'
          ? this.#peers.join(replica, setup.urls.get(replica.id) as string, backend.peer.apiKey)
          : this.#makeBackend(setup, backend, replica, this.#reader)
      this.#byReplica.set(replica.id, {
        backend: made,
        poolId: pool.id,
        model: pool.model,
        kind,
        engineId: replica.engineId,
      })
      if (this.#keys.has(pool.id)) keyOf(made)?.useKey(this.#keys.get(pool.id))
    }
  }

  useKey(poolId: string, apiKey: string | undefined): void {
    this.#keys.set(poolId, apiKey)
    for (const known of this.#byReplica.values()) if (known.poolId === poolId) keyOf(known.backend)?.useKey(apiKey)
  }

  forgetKey(poolId: string): void {
    this.#keys.delete(poolId)
  }

  putModel({ name, contextTokensMax }: { readonly name: string; readonly contextTokensMax: number }): void {
    this.#contextTokensMax.set(name, contextTokensMax)
    this.#reader?.allow(contextTokensMax)
  }

  dropModel(name: string): void {
    this.#contextTokensMax.delete(name)
  }

  of(replica: Replica): Backend {
    return this.#byReplica.get(replica.id)?.backend as Backend
  }

  forget(replica: Replica): void {
    const known = this.#byReplica.get(replica.id)
    this.#byReplica.delete(replica.id)
    const { engineId } = replica
    if (engineId !== undefined && !this.#isNamed(engineId)) this.#engines.delete(engineId)
    if (!this.#peers.leave(replica)) void closeOf(known?.backend)
  }

  hasKnownTokenizer(model: string): boolean {
    let isKnown = false
    for (const { backend, model: served } of this.#byReplica.values()) {
      if (served !== model || backend instanceof HttpPeerBackend) continue
      isKnown = backend instanceof SimulatedBackend || backend instanceof SimulatedBatchBackend
      if (!isKnown) return false
    }
    return isKnown
  }

  /** The first replica of the model that can report them is asked. */
  async metadataOf(model: string): Promise<OipMetadata | undefined> {
    for (const { backend, model: served, kind } of this.#byReplica.values()) {
      if (served !== model) continue
      if (backend instanceof HttpOipBackend) return backend.metadata()
      if (backend instanceof SimulatedBatchBackend && isSimulatedWhole(kind)) return simulatedMetadata(model, kind)
    }
    return undefined
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#byReplica.values(), ({ backend }) => closeOf(backend)))
  }

  #isNamed(engineId: string): boolean {
    for (const known of this.#byReplica.values()) if (known.engineId === engineId) return true
    return false
  }

  /** Replicas of several pools that name the same engine are one. */
  #driverOf({ engineId }: Replica, options: EngineOptions): EngineDriver {
    const known = engineId === undefined ? undefined : this.#engines.get(engineId)
    const driver = known ?? new EngineDriver(new Engine(options), this.#clock)
    if (engineId !== undefined) this.#engines.set(engineId, driver)
    return driver
  }

  #longestContext(): number {
    return Math.max(...this.#contextTokensMax.values())
  }

  #makeBackend(setup: PoolSetup, backend: BackendConfig, replica: Replica, reader: PromptReader | undefined): Backend {
    if (backend.kind !== 'simulated') return makeHttpBackend(setup, backend, replica, this.#http)
    const profile = profileOf(setup, replica) ?? backend.profile
    const { kind, pool } = setup
    const contexts = this.#contextTokensMax
    const terms = {
      reader: reader as PromptReader,
      get contextTokensMax(): number {
        return contexts.get(pool.model) ?? setup.contextTokensMax
      },
    }
    if (isSimulatedWhole(kind)) {
      const engine = new BatchEngine(batchOptionsOf(this.#engine, profile))
      const driver: BatchDriver = new EngineDriver(engine, this.#clock)
      return new SimulatedBatchBackend(driver, new SimulatedResults(Object.assign(terms, { kind })))
    }
    const options = engineOptionsOf(this.#engine, profile)
    const { blockTokens } = options.limits
    const text = new SimulatedText(Object.assign(terms, { seed: this.#engine.seed, blockTokens }))
    return new SimulatedBackend(this.#driverOf(replica, options), text, fullWorkPrices(options), cacheNameOf(replica))
  }
}

/** One connection to each gateway of a region for all its models, closed when the last of them is forgotten. */
class PeerBackends {
  readonly #region: string
  readonly #clock: Clock
  readonly #byUrl = new Map<string, { readonly backend: HttpPeerBackend; readonly users: Set<string> }>()
  readonly #urlOf = new Map<string, string>()

  constructor(region: string, clock: Clock) {
    this.#region = region
    this.#clock = clock
  }

  join(replica: Replica, url: string, apiKey: string | undefined): HttpPeerBackend {
    const known = this.#byUrl.get(url) ?? {
      backend: new HttpPeerBackend({ url, apiKey, clock: this.#clock, region: this.#region }),
      users: new Set(),
    }
    this.#byUrl.set(url, known)
    this.#urlOf.set(replica.id, url)
    known.users.add(replica.id)
    return known.backend
  }

  /** False when the replica is no peer. */
  leave(replica: Replica): boolean {
    const url = this.#urlOf.get(replica.id)
    const known = url === undefined ? undefined : this.#byUrl.get(url)
    if (url === undefined || known === undefined) return false
    this.#urlOf.delete(replica.id)
    known.users.delete(replica.id)
    if (known.users.size > 0) return true
    this.#byUrl.delete(url)
    void known.backend.close()
    return true
  }
}

/** The backend as one that has a key; simulated engines have none. */
function keyOf(backend: Backend): { useKey(apiKey: string | undefined): void } | undefined {
  return 'useKey' in backend ? (backend as HttpOpenAiBackend | HttpOipBackend | HttpPeerBackend) : undefined
}

function closeOf(backend: Backend | undefined): Promise<void> {
  if (backend === undefined || !('close' in backend)) return Promise.resolve()
  return (backend as HttpOpenAiBackend | HttpOipBackend).close()
}

/** One prompt reader for all engines of a process: a prompt is read once. */
export async function makePromptReader(tokensMax: number): Promise<PromptReader> {
  return new PromptReader({ tokenizer: await loadO200kTokenizer(), tokensMax, breathe })
}

/** Lets everything run that waits for the event loop. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
