import { secondsToUs, US_PER_S } from '../base/clock.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import type { CounterCell, GaugeCell, HistogramCell } from '../telemetry/cells.ts'
import type { Registry } from '../telemetry/registry.ts'

/** vLLM's metrics as vLLM declares them: names, help, labels, buckets. `engine-metrics.ts` feeds them. */

/** The served model, and the index of the engine among data-parallel engines behind one server: always the first. */
export type Identity = readonly [model: string, engine: string]

const LABELS = ['model_name', 'engine'] as const

export const FINISHED_REASONS = ['stop', 'length', 'abort', 'error', 'repetition'] as const

const TTFT_BOUNDS_S = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
]
const GAP_BOUNDS_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
const REQUEST_BOUNDS_S = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
const STEP_TOKEN_BOUNDS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]

export function declareGauges(registry: Registry, identity: Identity) {
  const of = (name: string, help: string): GaugeCell =>
    registry.gauge({ name: `vllm:${name}`, help, labels: LABELS }).with(...identity)
  return {
    running: of('num_requests_running', 'Number of requests in model execution batches.'),
    waiting: of('num_requests_waiting', 'Number of requests waiting to be processed.'),
    kvUsage: of('kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.'),
    kvUsageOld: of('gpu_cache_usage_perc', 'KV-cache usage, under its older name.'),
  }
}

export function declareCounters(registry: Registry, identity: Identity) {
  const of = (name: string, help: string): CounterCell =>
    registry.counter({ name: `vllm:${name}_total`, help, labels: LABELS }).with(...identity)
  return {
    preemptions: of('num_preemptions', 'Cumulative number of preemption from the engine.'),
    promptTokens: of('prompt_tokens', 'Number of prefill tokens processed.'),
    promptTokensCached: of('prompt_tokens_cached', 'Number of cached prompt tokens.'),
    generationTokens: of('generation_tokens', 'Number of generation tokens processed.'),
    prefixQueries: of('prefix_cache_queries', 'Prefix cache queries, in terms of number of queried tokens.'),
    prefixHits: of('prefix_cache_hits', 'Prefix cache hits, in terms of number of cached tokens.'),
  }
}

export function declareSuccess(registry: Registry, identity: Identity): Readonly<Record<string, CounterCell>> {
  const family = registry.counter({
    name: 'vllm:request_success_total',
    help: 'Count of successfully processed requests.',
    labels: [...LABELS, 'finished_reason'] as const,
  })
  return Object.fromEntries(FINISHED_REASONS.map((reason) => [reason, family.with(...identity, reason)]))
}

export function declareTimes(registry: Registry, identity: Identity) {
  const of = (name: string, help: string, boundsS: readonly number[]): HistogramCell =>
    registry
      .histogram({
        name: `vllm:${name}_seconds`,
        help,
        labels: LABELS,
        bounds: boundsS.map(secondsToUs),
        perUnit: US_PER_S,
      })
      .with(...identity)
  return {
    firstToken: of('time_to_first_token', 'Histogram of time to first token in seconds.', TTFT_BOUNDS_S),
    interToken: of('inter_token_latency', 'Histogram of inter-token latency in seconds.', GAP_BOUNDS_S),
    perOutputToken: of('time_per_output_token', 'Inter-token latency, under its older name.', GAP_BOUNDS_S),
    meanPerOutputToken: of('request_time_per_output_token', 'Mean time per output token of a request.', GAP_BOUNDS_S),
    whole: of('e2e_request_latency', 'Histogram of e2e request latency in seconds.', REQUEST_BOUNDS_S),
    queue: of('request_queue_time', 'Histogram of time spent in WAITING phase for request.', REQUEST_BOUNDS_S),
    inference: of('request_inference_time', 'Histogram of time spent in RUNNING phase for request.', REQUEST_BOUNDS_S),
    prefill: of('request_prefill_time', 'Histogram of time spent in PREFILL phase for request.', REQUEST_BOUNDS_S),
    decode: of('request_decode_time', 'Histogram of time spent in DECODE phase for request.', REQUEST_BOUNDS_S),
  }
}

export function declareSizes(registry: Registry, identity: Identity, contextTokensMax: number) {
  const tokenBounds = oneTwoFive(contextTokensMax)
  const of = (name: string, help: string, bounds: readonly number[] = tokenBounds): HistogramCell =>
    registry.histogram({ name: `vllm:${name}`, help, labels: LABELS, bounds }).with(...identity)
  return {
    promptTokens: of('request_prompt_tokens', 'Number of prefill tokens processed.'),
    outputTokens: of('request_generation_tokens', 'Number of generation tokens processed.'),
    outputTokensMax: of('request_params_max_tokens', 'Histogram of the max_tokens request parameter.'),
    choices: of('request_params_n', 'Histogram of the n request parameter.', [1, 2, 5, 10, 20]),
    // The name of this histogram ends like a counter's, as in vLLM.
    stepTokens: of('iteration_tokens_total', 'Histogram of number of tokens per engine_step.', STEP_TOKEN_BOUNDS),
  }
}

/** A gauge that is always 1; its labels have the facts, spelt as in Python. */
export function declareCacheInfo(registry: Registry, limits: EngineLimits): void {
  const info = {
    block_size: String(limits.blockTokens),
    cache_dtype: 'auto',
    enable_prefix_caching: 'True',
    engine: '0',
    num_cpu_blocks: 'None',
    num_gpu_blocks: String(limits.blockCount),
  }
  const help = 'Information of the LLMEngine CacheConfig'
  registry
    .gauge({ name: 'vllm:cache_config_info', help, labels: Object.keys(info) })
    .with(...Object.values(info))
    .set(1)
}

/** 1, 2, 5, 10, 20, 50 … up to the bound. */
function oneTwoFive(bound: number): number[] {
  const bounds: number[] = []
  for (let power = 1; power <= bound; power *= 10) {
    for (const mantissa of [1, 2, 5]) if (mantissa * power <= bound) bounds.push(mantissa * power)
  }
  return bounds
}
