import { loadConfig } from '../config/load.ts'
import type { EngineServerOptions } from '../engine-server/engine-server.ts'
import { CONFIG_FLAG, type Command, choiceFlag, type FlagValues, numberFlag, textFlag } from './command.ts'
import { runUntilSignal } from './run-until-signal.ts'

export const engineCommand: Command = {
  name: 'engine',
  summary: 'run one simulated engine with vLLM\u2019s API and metrics',
  about:
    'For trying a router, a dashboard or an autoscaler without a GPU: the engine looks like vLLM to them. Step times are\n' +
    'those of the profile\u2019s GPU. Requests wait inside the engine, as in vLLM. Faults are drawn from the seed.',
  flags: {
    config: CONFIG_FLAG,
    host: { type: 'string', value: 'ADDRESS', meaning: 'address to listen on' },
    port: { type: 'string', short: 'p', value: 'NUMBER', meaning: 'port to listen on; 0 takes any free one' },
    model: {
      type: 'string',
      short: 'm',
      value: 'NAME',
      meaning: 'name to serve under (default: the first configured)',
    },
    kind: { type: 'string', value: 'KIND', meaning: 'chat or embedding (default: what the configured model is)' },
    profile: { type: 'string', value: 'NAME', meaning: 'GPU and model size to time steps by, as h100-llama-8b' },
    'api-key': { type: 'string', value: 'TEXT', meaning: 'require this key for /v1 (default: no key)' },
    seed: { type: 'string', value: 'NUMBER', meaning: 'same seed, same answers and faults' },
    speculation: { type: 'string', value: 'NAME', meaning: 'speculate with this drafter: eagle, eagle3 or ngram' },
    'max-model-len': { type: 'string', value: 'TOKENS', meaning: 'prompt and answer together' },
    'max-seqs': { type: 'string', value: 'NUMBER', meaning: 'sequences in one batch' },
    'token-budget': { type: 'string', value: 'TOKENS', meaning: 'tokens computed in one step' },
    batching: {
      type: 'string',
      value: 'MODE',
      meaning: 'continuous, static or micro-batch (gathers for BATCH_TIMEOUT_MS; default: as configured)',
    },
    'long-prefill': {
      type: 'string',
      value: 'TOKENS',
      meaning: 'most tokens of a step for one prompt: long_prefill_token_threshold (default: off)',
    },
    blocks: {
      type: 'string',
      value: 'NUMBER',
      meaning: 'blocks of keys and values (default: what the GPU has room for)',
    },
    'block-size': { type: 'string', value: 'TOKENS', meaning: 'tokens in a block (default: 16)' },
    'max-waiting': {
      type: 'string',
      value: 'NUMBER',
      meaning: 'sequences that may wait; more get 503 (default: 16384)',
    },
    'stream-interval': {
      type: 'string',
      value: 'TOKENS',
      meaning: 'tokens in a frame of a stream after the first (default: 1)',
    },
    slowdown: { type: 'string', value: 'FACTOR', meaning: 'every step takes this many times as long' },
    'load-seconds': { type: 'string', value: 'SECONDS', meaning: 'cold start: 503 until the weights are loaded' },
    'fail-rate': { type: 'string', value: 'RATIO', meaning: 'share of requests that get 500, from 0 to 1' },
    'hang-rate': { type: 'string', value: 'RATIO', meaning: 'share of requests that are taken and never answered' },
    'hang-after': { type: 'string', value: 'NUMBER', meaning: 'answer this many requests, then none, while healthy' },
    'crash-after': { type: 'string', value: 'NUMBER', meaning: 'answer this many requests, then crash' },
  },
  examples: [
    'spillway engine',
    'spillway engine --profile h100-llama-70b-tp4 --model llama-70b --port 8001',
    'spillway engine --kind embedding --profile h100-llama-1b --model bge-m3',
    'BATCH_TIMEOUT_MS=10 spillway engine --profile reference-a100 --batching micro-batch',
    'spillway engine --load-seconds 40 --fail-rate 0.02 --slowdown 3',
  ],
  async run(flags, io) {
    const config = loadConfig({
      path: textFlag(flags, 'config'),
      flags: { 'engine.listenHost': textFlag(flags, 'host'), 'engine.listenPort': textFlag(flags, 'port') },
    })
    const options = engineServerOptions(flags)
    // Loaded only now: help, version and a broken configuration need none of the platform.
    const { serveEngine } = await import('../engine-server/engine-server.ts')
    return runUntilSignal(() => serveEngine(config, io, options))
  },
}

const COUNT = { min: 1, max: 1_000_000_000, isWhole: true }
const RATIO = { min: 0, max: 1 }

/** The flags, checked, as options of the engine server. */
export function engineServerOptions(flags: FlagValues): EngineServerOptions {
  const count = (name: string): number | undefined => numberFlag(flags, name, COUNT)
  const afterMany = (name: string): number | undefined => numberFlag(flags, name, { ...COUNT, min: 0 })
  return {
    model: textFlag(flags, 'model'),
    profile: textFlag(flags, 'profile'),
    kind: choiceFlag(flags, 'kind', ['chat', 'embedding']),
    apiKey: textFlag(flags, 'api-key'),
    seed: numberFlag(flags, 'seed', { min: 0, max: Number.MAX_SAFE_INTEGER, isWhole: true }),
    contextTokensMax: count('max-model-len'),
    streamInterval: numberFlag(flags, 'stream-interval', { min: 1, max: 4_096, isWhole: true }),
    changes: {
      sequencesMax: count('max-seqs'),
      tokenBudget: count('token-budget'),
      longPrefillTokens: count('long-prefill'),
      batching: choiceFlag(flags, 'batching', ['continuous', 'static', 'micro-batch']),
      blockCount: count('blocks'),
      blockTokens: numberFlag(flags, 'block-size', { min: 1, max: 4_096, isWhole: true }),
      waitingMax: count('max-waiting'),
      speculation: textFlag(flags, 'speculation'),
      slowdown: numberFlag(flags, 'slowdown', { min: 0.001, max: 1_000 }),
    },
    loadSeconds: numberFlag(flags, 'load-seconds', { min: 0, max: 86_400 }),
    faults: {
      failRatio: numberFlag(flags, 'fail-rate', RATIO) ?? 0,
      hangRatio: numberFlag(flags, 'hang-rate', RATIO) ?? 0,
      hangAfter: afterMany('hang-after'),
      crashAfter: afterMany('crash-after'),
    },
    exit: (code) => process.exit(code),
  }
}
