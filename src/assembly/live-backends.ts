import { type BatchDriver, EngineDriver } from '../backends/engine-driver.ts'
import { HttpOipBackend } from '../backends/http-oip.ts'
import type { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { HttpPeerBackend } from '../backends/http-peer.ts'
import { loadO200kTokenizer } from '../backends/o200k-tokenizer.ts'
import { PromptReader } from '../backends/prompt-reader.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedBatchBackend } from '../backends/simulated-batch.ts'
import { SimulatedResults, simulatedMetadata } from '../backends/simulated-results.ts'
import { SimulatedText } from '../backends/simulated-text.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig, Config, PeerConfig } from '../config/schema.ts'
import { type PoolSetup, profileOf, toPools } from '../config/to-domain.ts'
import type { ModelKind, Replica } from '../domain/fleet.ts'
import type { ModelFeatures } from '../domain/model-features.ts'
import { BatchEngine } from '../engine/batch-engine.ts'
import { Engine } from '../engine/engine.ts'
import type { Backend, Backends } from '../lifecycle/ports.ts'
import type { OipMetadata } from '../wire/oip.ts'
import { batchOptionsOf } from './batch-options.ts'
import { engineOptionsOf } from './engine-options.ts'
import { makeHttpBackend } from './http-backends.ts'

/** The backends of a configuration, one per replica, and what their models can do. */
export interface LiveBackends extends Backends {
  /** Loads what a pool of this kind needs, once for all pools. */
  prepare(setup: PoolSetup): Promise<void>
  /** Adds backends for these replicas; existing ones stay as they are. */
  add(setup: PoolSetup, replicas: readonly Replica[]): void
  forget(replica: Replica): void
  featuresOf(model: string): ModelFeatures
  /** Names and shapes of the model's tensors; undefined when no replica reports them. */
  metadataOf(model: string): Promise<OipMetadata | undefined>
  close(): Promise<void>
}

const SIMULATED_FEATURES: ModelFeatures = {
  logprobs: false,
  tools: false,
  jsonSchema: false,
  vectors: true,
  tensors: true,
}
/** Triton's `generate` takes a text and returns a text. */
const OIP_FEATURES: ModelFeatures = { logprobs: false, tools: false, jsonSchema: false, tensors: true }
const UPSTREAM_FEATURES: ModelFeatures = { logprobs: true, tools: true, jsonSchema: true, vectors: true }

const FEATURES: Readonly<Record<PoolSetup['backend']['kind'], ModelFeatures>> = {
  peer: { ...UPSTREAM_FEATURES, tensors: true },
  simulated: SIMULATED_FEATURES,
  'http-openai': UPSTREAM_FEATURES,
  'http-oip': OIP_FEATURES,
}

export async function makeLiveBackends(config: Config, clock: Clock): Promise<LiveBackends> {
  const backends = new BackendsByReplica(config, clock)
  for (const setup of toPools(config)) {
    await backends.prepare(setup)
    backends.add(setup, setup.pool.replicas)
  }
  return backends
}

class BackendsByReplica implements LiveBackends {
  readonly #config: Config
  readonly #clock: Clock
  readonly #byReplica = new Map<string, Backend>()
  readonly #kinds = new Map<string, PoolSetup['backend']['kind']>()
  readonly #peerOf: (peer: PeerConfig) => HttpPeerBackend
  /** One replica per model, which is asked for the model's tensors. */
  readonly #representatives = new Map<string, { readonly replicaId: string; readonly kind: ModelKind }>()
  #reader: PromptReader | undefined

  constructor(config: Config, clock: Clock) {
    this.#config = config
    this.#clock = clock
    this.#peerOf = makePeers(config, clock)
  }

  async prepare({ backend }: PoolSetup): Promise<void> {
    // A tokenizer takes a hundred megabytes: a gateway in front of real engines does not load it.
    if (backend.kind === 'simulated') this.#reader ??= await makePromptReader(longestContext(this.#config))
  }

  add(setup: PoolSetup, replicas: readonly Replica[]): void {
    const { pool, backend } = setup
    if (backend.kind === 'peer') {
      // The pools of this region decide what a model can do; another region decides only for models without a pool
      // here.
      if (!this.#kinds.has(pool.model)) this.#kinds.set(pool.model, 'peer')
      for (const replica of replicas) this.#byReplica.set(replica.id, this.#peerOf(backend.peer))
      return
    }
    this.#kinds.set(pool.model, backend.kind)
    for (const replica of replicas) {
      if (this.#byReplica.has(replica.id)) continue
      this.#byReplica.set(replica.id, makeBackend(this.#config, setup, backend, replica, this.#clock, this.#reader))
      this.#representatives.set(pool.model, { replicaId: replica.id, kind: setup.kind })
    }
  }

  of(replica: Replica): Backend {
    return this.#byReplica.get(replica.id) as Backend
  }

  forget(replica: Replica): void {
    const backend = this.#byReplica.get(replica.id)
    this.#byReplica.delete(replica.id)
    void closeOf(backend)
  }

  featuresOf(model: string): ModelFeatures {
    return FEATURES[this.#kinds.get(model) ?? 'simulated']
  }

  async metadataOf(model: string): Promise<OipMetadata | undefined> {
    const { replicaId = '', kind = 'chat' } = this.#representatives.get(model) ?? {}
    const backend = this.#byReplica.get(replicaId)
    if (backend instanceof HttpOipBackend) return backend.metadata()
    return backend instanceof SimulatedBatchBackend && kind !== 'chat' ? simulatedMetadata(model, kind) : undefined
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#byReplica.values(), closeOf))
  }
}

function closeOf(backend: Backend | undefined): Promise<void> {
  if (backend === undefined || !('close' in backend)) return Promise.resolve()
  return (backend as HttpOpenAiBackend | HttpOipBackend).close()
}

/** One connection to a region for all its models. */
function makePeers(config: Config, clock: Clock): (peer: PeerConfig) => HttpPeerBackend {
  const made = new Map<string, HttpPeerBackend>()
  return (peer) => {
    const { region, url, apiKey } = peer
    const known = made.get(region) ?? new HttpPeerBackend({ url, apiKey, clock, region: config.regions.local ?? '' })
    made.set(region, known)
    return known
  }
}

function makeBackend(
  config: Config,
  setup: PoolSetup,
  backend: BackendConfig,
  replica: Replica,
  clock: Clock,
  reader: PromptReader | undefined,
): Backend {
  if (backend.kind !== 'simulated') return makeHttpBackend(setup, backend, replica, clock)
  const profile = profileOf(setup, replica) ?? backend.profile
  const { kind, contextTokensMax } = setup
  if (kind !== 'chat') {
    const driver: BatchDriver = new EngineDriver(new BatchEngine(batchOptionsOf(config, profile)), clock)
    return new SimulatedBatchBackend(
      driver,
      new SimulatedResults({ kind, reader: reader as PromptReader, contextTokensMax }),
    )
  }
  const options = engineOptionsOf(config, profile)
  const text = new SimulatedText({
    reader: reader as PromptReader,
    seed: config.seed,
    blockTokens: options.limits.blockTokens,
    contextTokensMax,
  })
  return new SimulatedBackend(new EngineDriver(new Engine(options), clock), text)
}

const longestContext = (config: Config): number => Math.max(...config.models.map((model) => model.contextTokensMax))

/** One prompt reader for all engines of a process: a prompt is read once. */
export async function makePromptReader(tokensMax: number): Promise<PromptReader> {
  return new PromptReader({ tokenizer: await loadO200kTokenizer(), tokensMax, breathe })
}

/** Lets everything run that waits for the event loop. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
