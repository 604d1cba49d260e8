import { EngineDriver } from '../backends/engine-driver.ts'
import { HTTP_OPENAI_DEFAULTS, HttpOpenAiBackend } from '../backends/http-openai.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { SimulatedText, type Tokenizer } from '../backends/simulated-text.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { type PoolSetup, toPools } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { Engine } from '../engine/engine.ts'
import type { ModelFeatures } from '../gateway/model-directory.ts'
import type { Backend, Backends } from '../lifecycle/ports.ts'
import { engineOptionsOf } from './engine-options.ts'

/** The backends that a configuration names, one per replica, and what their models can do. */
export interface LiveBackends extends Backends {
  featuresOf(model: string): ModelFeatures
  close(): Promise<void>
}

const SIMULATED_FEATURES: ModelFeatures = { logprobs: false, tools: false, jsonSchema: false }
const UPSTREAM_FEATURES: ModelFeatures = { logprobs: true, tools: true, jsonSchema: true }

export async function makeLiveBackends(config: Config, clock: Clock): Promise<LiveBackends> {
  const setups = toPools(config)
  const needsText = setups.some(({ backend }) => backend.kind === 'simulated')
  // A tokenizer is a hundred megabytes: a gateway before real engines never loads one.
  const tokenizer = needsText ? await loadTokenizer() : undefined
  const byReplica = new Map<string, Backend>()
  const closers: Array<() => Promise<void>> = []
  for (const setup of setups) {
    for (const replica of setup.pool.replicas) {
      const backend = makeBackend(config, setup, replica, clock, tokenizer)
      if (backend instanceof HttpOpenAiBackend) closers.push(() => backend.close())
      byReplica.set(replica.id, backend)
    }
  }
  const kinds = new Map(setups.map(({ pool, backend }) => [pool.model, backend.kind]))
  return {
    of: (replica) => byReplica.get(replica.id) as Backend,
    featuresOf: (model) => (kinds.get(model) === 'simulated' ? SIMULATED_FEATURES : UPSTREAM_FEATURES),
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
  tokenizer: Tokenizer | undefined,
): Backend {
  const { backend } = setup
  if (backend.kind === 'http-openai') {
    const url = setup.urls.get(replica.id) as string
    const { apiKey, headers, upstreamModel, timeoutMs } = backend
    return new HttpOpenAiBackend({
      ...HTTP_OPENAI_DEFAULTS,
      url,
      apiKey,
      headers,
      upstreamModel,
      silenceMsMax: timeoutMs,
    })
  }
  const options = engineOptionsOf(config, backend.profile)
  const driver = new EngineDriver(new Engine(options), clock)
  const { blockTokens } = options.limits
  return new SimulatedBackend(
    driver,
    new SimulatedText({ tokenizer: tokenizer as Tokenizer, seed: config.seed, blockTokens }),
  )
}

/**
 * Byte-pair encoding takes time quadratic in the length of a word: 100 kB of one letter would stop this process for
 * fourteen seconds. Longer runs are cut, which costs them a token more than a real tokenizer would count.
 */
const LONG_RUN = /\S{65}|\s{65}/u
const BOUNDED_RUNS = /\s?\S{1,64}|\s{1,64}/gu

export async function loadTokenizer(): Promise<Tokenizer> {
  const { encode, decode } = await import('gpt-tokenizer/encoding/o200k_base')
  // Special tokens in a prompt are text like any other: nobody may end our prompt by writing one.
  const encodeText = (text: string): number[] => encode(text, { disallowedSpecial: new Set() })
  return {
    encode: (text) => (LONG_RUN.test(text) ? (text.match(BOUNDED_RUNS) ?? []).flatMap(encodeText) : encodeText(text)),
    decode: (tokens) => decode(tokens),
  }
}
