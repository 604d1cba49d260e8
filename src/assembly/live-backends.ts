import { type BatchDriver, EngineDriver } from '../backends/engine-driver.ts'
import { HttpOipBackend } from '../backends/http-oip.ts'
import type { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { HttpPeerBackend } from '../backends/http-peer.ts'
import { loadO200kTokenizer } from '../backends/o200k-tokenizer.ts'
import { PromptReader } from '../backends/prompt-reader.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import { isSimulatedWhole, SimulatedResults, simulatedMetadata } from '../backends/simulated-results.ts'
import { SimulatedText } from '../backends/simulated-text.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig, Config, PeerConfig } from '../config/schema.ts'
import { type PoolSetup, profileOf, toPools } from '../config/to-domain.ts'
import type { ModelKind, Replica } from '../domain/fleet.ts'
import { BatchEngine } from '../engine/batch-engine.ts'
import { Engine } from '../engine/engine.ts'
import { fullWorkPrices } from '../engine/full-work.ts'
import type { Backend, Backends } from '../lifecycle/ports.ts'
import type { OipMetadata } from '../wire/oip.ts'
import { batchOptionsOf } from './batch-options.ts'
import { type EngineSettings, engineOptionsOf } from './engine-options.ts'
import { makeHttpBackend } from './http-backends.ts'

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
  /** Whether o200k counts the model's tokens as its engines do: true of simulated engines alone. */
  hasKnownTokenizer(model: string): boolean
  /** Names and shapes of the model's tensors; undefined when no replica reports them. */
  metadataOf(model: string): Promise<OipMetadata | undefined>
  close(): Promise<void>
}

export async function makeLiveBackends(config: Config, clock: Clock): Promise<LiveBackends> {
  const backends = new BackendsByReplica(config, config.regions.local ?? '', clock)
  for (const model of config.models) backends.putModel(model)
  for (const setup of toPools(config)) {
    await backends.prepare(setup)
    backends.add(setup, setup.pool.replicas)
  }
  return backends
}

interface KnownBackend {
  readonly backend: Backend
  readonly model: string
  readonly kind: ModelKind
}

class BackendsByReplica implements LiveBackends {
  readonly #engine: EngineSettings
  readonly #clock: Clock
  readonly #byReplica = new Map<string, KnownBackend>()
  readonly #peers: PeerBackends
  /** The context of each model that the configuration or the registry names. */
  readonly #contextTokensMax = new Map<string, number>()
  #reader: PromptReader | undefined

  constructor(engine: EngineSettings, region: string, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
    this.#peers = new PeerBackends(region, clock)
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
          ? this.#peers.join(backend.peer, replica)
          : this.#makeBackend(setup, backend, replica, this.#reader)
      this.#byReplica.set(replica.id, { backend: made, model: pool.model, kind })
    }
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

  #longestContext(): number {
    return Math.max(...this.#contextTokensMax.values())
  }

  #makeBackend(setup: PoolSetup, backend: BackendConfig, replica: Replica, reader: PromptReader | undefined): Backend {
    if (backend.kind !== 'simulated') return makeHttpBackend(setup, backend, replica, this.#clock)
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
    return new SimulatedBackend(new EngineDriver(new Engine(options), this.#clock), text, fullWorkPrices(options))
  }
}

/** One connection to a region for all its models, closed when the last of them is forgotten. */
class PeerBackends {
  readonly #region: string
  readonly #clock: Clock
  readonly #made = new Map<string, { readonly backend: HttpPeerBackend; readonly users: Set<string> }>()

  constructor(region: string, clock: Clock) {
    this.#region = region
    this.#clock = clock
  }

  join({ region, url, apiKey }: PeerConfig, replica: Replica): HttpPeerBackend {
    const known = this.#made.get(region) ?? {
      backend: new HttpPeerBackend({ url, apiKey, clock: this.#clock, region: this.#region }),
      users: new Set(),
    }
    this.#made.set(region, known)
    known.users.add(replica.id)
    return known.backend
  }

  /** False when the replica is no peer. */
  leave(replica: Replica): boolean {
    const known = this.#made.get(replica.region)
    if (known?.users.delete(replica.id) !== true) return false
    if (known.users.size > 0) return true
    this.#made.delete(replica.region)
    void known.backend.close()
    return true
  }
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
