import { EngineDriver } from '../backends/engine-driver.ts'
import type { HttpOipBackend } from '../backends/http-oip.ts'
import type { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { loadO200kTokenizer } from '../backends/o200k-tokenizer.ts'
import { PromptReader } from '../backends/prompt-reader.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedText } from '../backends/simulated-text.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig, Config } from '../config/schema.ts'
import { type PoolSetup, profileOf, toPools } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { Engine } from '../engine/engine.ts'
import type { ModelFeatures } from '../gateway/model-directory.ts'
import type { Backend, Backends } from '../lifecycle/ports.ts'
import { engineOptionsOf } from './engine-options.ts'
import { makeHttpBackend } from './http-backends.ts'

/** The backends that a configuration names, one per replica, and what their models can do. */
export interface LiveBackends extends Backends {
  featuresOf(model: string): ModelFeatures
  close(): Promise<void>
}

export const SIMULATED_FEATURES: ModelFeatures = { logprobs: false, tools: false, jsonSchema: false }
/** Triton's `generate` takes a text and gives one. */
const OIP_FEATURES: ModelFeatures = { logprobs: false, tools: false, jsonSchema: false }
const UPSTREAM_FEATURES: ModelFeatures = { logprobs: true, tools: true, jsonSchema: true }

const FEATURES: Readonly<Record<BackendConfig['kind'], ModelFeatures>> = {
  simulated: SIMULATED_FEATURES,
  'http-openai': UPSTREAM_FEATURES,
  'http-oip': OIP_FEATURES,
}

export async function makeLiveBackends(config: Config, clock: Clock): Promise<LiveBackends> {
  const setups = toPools(config)
  const needsText = setups.some(({ backend }) => backend.kind === 'simulated')
  // A tokenizer is a hundred megabytes: a gateway before real engines never loads one.
  const reader = needsText ? await makePromptReader(longestContext(config)) : undefined
  const byReplica = new Map<string, Backend>()
  const closers: Array<() => Promise<void>> = []
  for (const setup of setups) {
    for (const replica of setup.pool.replicas) {
      const backend = makeBackend(config, setup, replica, clock, reader)
      if ('close' in backend) closers.push(() => (backend as HttpOpenAiBackend | HttpOipBackend).close())
      byReplica.set(replica.id, backend)
    }
  }
  const kinds = new Map(setups.map(({ pool, backend }) => [pool.model, backend.kind]))
  return {
    of: (replica) => byReplica.get(replica.id) as Backend,
    featuresOf: (model) => FEATURES[kinds.get(model) ?? 'simulated'],
    close: async () => {
      await Promise.all(closers.map((close) => close()))
    },
  }
}

function makeBackend(
  config: Config,
  setup: PoolSetup,
  replica: Replica,
  clock: Clock,
  reader: PromptReader | undefined,
): Backend {
  const { backend } = setup
  if (backend.kind !== 'simulated') return makeHttpBackend(setup, backend, replica, clock)
  const options = engineOptionsOf(config, profileOf(setup, replica) ?? backend.profile)
  const text = new SimulatedText({
    reader: reader as PromptReader,
    seed: config.seed,
    blockTokens: options.limits.blockTokens,
    contextTokensMax:
      config.models.find(({ name }) => name === setup.pool.model)?.contextTokensMax ?? longestContext(config),
  })
  return new SimulatedBackend(new EngineDriver(new Engine(options), clock), text)
}

const longestContext = (config: Config): number => Math.max(...config.models.map((model) => model.contextTokensMax))

/** One for all engines of a process: whoever reads a prompt again finds it read. */
export async function makePromptReader(tokensMax: number): Promise<PromptReader> {
  return new PromptReader({ tokenizer: await loadO200kTokenizer(), tokensMax, breathe })
}

/** Lets everything run that is waiting for the event loop. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
