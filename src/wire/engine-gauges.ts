/**
 * How busy does an engine say that it is, and how much memory does it have? Gauges and counters on a Prometheus page, by
 * whatever names the engine has for them. One pass over the page; only the lines that begin with a known name are read.
 * What the page does not tell is absent: an engine without a gauge is unknown, not idle and not empty. So is what cannot be
 * true.
 *
 * Counts of data-parallel ranks are added (`dp_rank` of SGLang, `engine` of vLLM); several ranks of one tensor-parallel
 * group report the same sequences, so the largest of each rank counts once. Of ratios the largest counts: the fullest rank
 * is the one that preempts.
 *
 * Names as of vLLM v1 (and the older `gpu_` one; its Rust front end tells no memory), SGLang (which has had colons and underscores), llama.cpp's server
 * (its KV gauge is gone from newer ones), TGI, Triton with TensorRT-LLM, and Triton alone.
 */
export interface EngineGauges {
  readonly runningCount?: number
  readonly waitingCount?: number
  readonly kvUsageRatio?: number
  /** Sequences put back for want of memory, since the engine began. */
  readonly preemptionCount?: number
  /** Tokens that the engine's KV memory holds, all ranks together. */
  readonly kvTokensMax?: number
  /** Tokens read and written, counted with every step, since the engine began. */
  readonly workCount?: number
  /** It is up, answers `/health` and lets requests wait until somebody wakes it. */
  readonly isAsleep?: boolean
}

/** Memory that is told as a number of blocks of some tokens each. */
type Fact = Exclude<keyof Figures, 'workCount'> | 'blockCount' | 'blockTokens' | Work | 'sleepLevel'

/** Of these the sum is the work: an engine that reads a prompt writes nothing, and one without the second has the first. */
type Work = 'writtenTokens' | 'steppedTokens'

interface GaugeName {
  readonly fact: Fact
  readonly name: string
  /** Text that the labels of the line must contain. */
  readonly label?: string
  /** The fact is the product of these labels, and not the value. */
  readonly product?: readonly string[]
  /** Every rank tells the figure of all ranks together. */
  readonly isOfAll?: boolean
}

const TRT_BLOCKS = 'nv_trt_llm_kv_cache_block_metrics'

const NAMES: readonly GaugeName[] = [
  { fact: 'runningCount', name: 'vllm:num_requests_running' },
  { fact: 'waitingCount', name: 'vllm:num_requests_waiting' },
  { fact: 'kvUsageRatio', name: 'vllm:kv_cache_usage_perc' },
  { fact: 'kvUsageRatio', name: 'vllm:gpu_cache_usage_perc' },
  { fact: 'preemptionCount', name: 'vllm:num_preemptions_total' },
  // Of one rank, since mid-2026; right for models whose layers have blocks of different sizes, too.
  { fact: 'kvTokensMax', name: 'vllm:cache_config_info', product: ['kv_cache_size_tokens'] },
  // The sum over all ranks, on the line of every rank.
  { fact: 'kvTokensMax', name: 'vllm:cache_config_info', product: ['num_gpu_blocks', 'block_size'], isOfAll: true },
  // SGLang and TGI count tokens when an answer ends, which says nothing of a step.
  { fact: 'writtenTokens', name: 'vllm:generation_tokens_total' },
  { fact: 'steppedTokens', name: 'vllm:iteration_tokens_total_sum' },
  { fact: 'steppedTokens', name: 'llamacpp:n_decode_total' },
  // One line for each state, of which the one that holds is 1.
  { fact: 'sleepLevel', name: 'vllm:engine_sleep_state', label: 'sleep_state="weights_offloaded"' },
  { fact: 'sleepLevel', name: 'vllm:engine_sleep_state', label: 'sleep_state="discard_all"' },
  { fact: 'runningCount', name: 'sglang:num_running_reqs' },
  { fact: 'waitingCount', name: 'sglang:num_queue_reqs' },
  { fact: 'kvUsageRatio', name: 'sglang:token_usage' },
  { fact: 'preemptionCount', name: 'sglang:num_retracted_requests_total' },
  { fact: 'kvTokensMax', name: 'sglang:max_total_num_tokens' },
  { fact: 'runningCount', name: 'sglang_num_running_reqs' },
  { fact: 'waitingCount', name: 'sglang_num_queue_reqs' },
  { fact: 'kvUsageRatio', name: 'sglang_token_usage' },
  { fact: 'preemptionCount', name: 'sglang_num_retracted_requests_total' },
  { fact: 'kvTokensMax', name: 'sglang_max_total_num_tokens' },
  { fact: 'runningCount', name: 'llamacpp:requests_processing' },
  { fact: 'waitingCount', name: 'llamacpp:requests_deferred' },
  { fact: 'kvUsageRatio', name: 'llamacpp:kv_cache_usage_ratio' },
  { fact: 'runningCount', name: 'tgi_batch_current_size' },
  { fact: 'waitingCount', name: 'tgi_queue_size' },
  { fact: 'runningCount', name: 'nv_trt_llm_request_metrics', label: 'request_type="scheduled"' },
  { fact: 'waitingCount', name: 'nv_trt_llm_request_metrics', label: 'request_type="waiting"' },
  { fact: 'kvUsageRatio', name: TRT_BLOCKS, label: 'kv_cache_block_type="fraction"' },
  { fact: 'blockCount', name: TRT_BLOCKS, label: 'kv_cache_block_type="max"' },
  { fact: 'blockTokens', name: TRT_BLOCKS, label: 'kv_cache_block_type="tokens_per"' },
  { fact: 'waitingCount', name: 'nv_inference_pending_request_count' },
]

type Figures = Partial<Record<Exclude<keyof EngineGauges, 'isAsleep'>, number>>

export function readEngineGauges(page: string): EngineGauges {
  const byFact = new Map<Fact, Map<string, number>>()
  let firstName: Partial<Record<Fact, string>> = {}
  for (let at = 0; at < page.length; ) {
    const newline = page.indexOf('\n', at)
    const end = newline < 0 ? page.length : newline
    if (page.charCodeAt(at) !== 35) firstName = readLine(page.slice(at, end).trimEnd(), byFact, firstName)
    at = end + 1
  }
  const gauges: Figures = {}
  const blocks = { blockCount: 0, blockTokens: 0 }
  let isAsleep: boolean | undefined
  for (const [fact, ranks] of byFact) {
    const values = [...ranks.values()]
    const value =
      fact === 'kvUsageRatio'
        ? values.reduce((most, value) => Math.max(most, value))
        : values.reduce((sum, value) => sum + value, 0)
    if (fact === 'blockCount' || fact === 'blockTokens') blocks[fact] = value
    else if (fact === 'sleepLevel') isAsleep = value > 0
    else if (fact === 'writtenTokens' || fact === 'steppedTokens') gauges.workCount = (gauges.workCount ?? 0) + value
    else gauges[fact] = value
  }
  if (blocks.blockCount * blocks.blockTokens > 0) gauges.kvTokensMax ??= blocks.blockCount * blocks.blockTokens
  return { ...believable(gauges), ...(isAsleep !== undefined && { isAsleep }) }
}

/**
 * A number that no engine can mean is none: believed, it would close the replica for as long as it is told. A ratio above 1
 * is a percentage or worse; an engine that has not set its memory up yet says 0, or a block.
 */
function believable(gauges: Figures): Figures {
  for (const [fact, [least, most]] of BELIEVABLE) {
    const value = gauges[fact]
    if (value !== undefined && !(value >= least && value <= most)) delete gauges[fact]
  }
  if (gauges.kvUsageRatio !== undefined) gauges.kvUsageRatio = Math.min(1, gauges.kvUsageRatio)
  return gauges
}

const BELIEVABLE: ReadonlyArray<readonly [fact: keyof Figures, range: readonly [least: number, most: number]]> = [
  ['runningCount', [0, 100_000]],
  ['waitingCount', [0, 1_000_000]],
  // What is a little above is rounding.
  ['kvUsageRatio', [0, 1.01]],
  ['kvTokensMax', [256, 1e12]],
]

/** Each fact is read under the name that came first: an engine with two names for it would be counted twice. */
function readLine(
  line: string,
  byFact: Map<Fact, Map<string, number>>,
  firstName: Partial<Record<Fact, string>>,
): Partial<Record<Fact, string>> {
  const known = NAMES.find((one) => isLineOf(line, one.name) && toldIn(line, one) !== undefined)
  if (known === undefined) return firstName
  const { fact, name, isOfAll } = known
  if ((firstName[fact] ?? name) !== name) return firstName
  const value = toldIn(line, known) ?? 0
  const rank = isOfAll === true ? '' : (labelOf(line, 'dp_rank') ?? labelOf(line, 'engine') ?? '')
  const ranks = byFact.get(fact) ?? new Map<string, number>()
  // Triton has one line per model.
  const key = name === 'nv_inference_pending_request_count' ? line.slice(0, line.indexOf('}')) : rank
  ranks.set(key, Math.max(ranks.get(key) ?? 0, value))
  byFact.set(fact, ranks)
  return { ...firstName, [fact]: name }
}

/** Undefined when the line tells another fact, or no number. */
function toldIn(line: string, { label, product }: GaugeName): number | undefined {
  if (label !== undefined && !line.includes(label)) return undefined
  return product === undefined ? gaugeValue(line) : productOf(line, product)
}

/**
 * Whether the page is that of an engine that can send its usage with every frame: vLLM, and SGLang since late 2025. Older
 * ones ignore the wish; a front end that refuses it is asked without.
 */
export const sendsRunningUsage = (page: string): boolean => RUNNING_USAGE_NAMES.test(page)

/** Whether the page is that of an engine that keeps prompts apart by `cache_salt`: vLLM since 0.8.5, SGLang since late 2025. */
export const takesCacheSalt = (page: string): boolean => CACHE_SALT_NAMES.test(page)

/** Whether the page is SGLang's, whose `/health` waits for a token of its own. */
export const generatesForHealth = (page: string): boolean => SGLANG_NAMES.test(page)

const SGLANG_NAMES = /^sglang[:_]/m
const RUNNING_USAGE_NAMES = /^(?:vllm|sglang):/m
const CACHE_SALT_NAMES = /^(?:vllm|sglang)[:_]/m

function isLineOf(line: string, name: string): boolean {
  if (!line.startsWith(name)) return false
  const next = line[name.length]
  return next === '{' || next === ' '
}

/** `name{labels} value [timestamp]`. */
function gaugeValue(line: string): number | undefined {
  const labelsEnd = line.lastIndexOf('}')
  const rest = labelsEnd >= 0 ? line.slice(labelsEnd + 1) : line.slice(line.indexOf(' '))
  return finite(rest.trim().split(' ')[0])
}

/** Undefined when a label is missing or is no number: vLLM writes `None` before it has measured its memory. */
function productOf(line: string, labels: readonly string[]): number | undefined {
  let product = 1
  for (const label of labels) product *= finite(labelOf(line, label)) ?? Number.NaN
  return Number.isFinite(product) ? product : undefined
}

function labelOf(line: string, label: string): string | undefined {
  return new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1]
}

function finite(text: string | undefined): number | undefined {
  const value = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}
