/**
 * How busy does an engine say that it is? Gauges on a Prometheus page, by whatever names the engine has for them. One
 * pass over the page; only the lines that begin with a known name are read.
 *
 * Counts of data-parallel ranks are added; several ranks of one tensor-parallel group report the same sequences, so the
 * largest of each `dp_rank` counts once. Of ratios the largest counts: the fullest rank is the one that preempts.
 *
 * Names as of vLLM v1 (and the older `gpu_` one), SGLang (which has had colons and underscores), llama.cpp's server
 * (its KV gauge is gone from newer ones), TGI, Triton with TensorRT-LLM, and Triton alone.
 */
export interface EngineGauges {
  readonly runningCount?: number
  readonly waitingCount?: number
  readonly kvUsageRatio?: number
}

interface GaugeName {
  readonly fact: keyof EngineGauges
  readonly name: string
  /** Text that the labels of the line must contain. */
  readonly label?: string
}

const NAMES: readonly GaugeName[] = [
  { fact: 'runningCount', name: 'vllm:num_requests_running' },
  { fact: 'waitingCount', name: 'vllm:num_requests_waiting' },
  { fact: 'kvUsageRatio', name: 'vllm:kv_cache_usage_perc' },
  { fact: 'kvUsageRatio', name: 'vllm:gpu_cache_usage_perc' },
  { fact: 'runningCount', name: 'sglang:num_running_reqs' },
  { fact: 'waitingCount', name: 'sglang:num_queue_reqs' },
  { fact: 'kvUsageRatio', name: 'sglang:token_usage' },
  { fact: 'runningCount', name: 'sglang_num_running_reqs' },
  { fact: 'waitingCount', name: 'sglang_num_queue_reqs' },
  { fact: 'kvUsageRatio', name: 'sglang_token_usage' },
  { fact: 'runningCount', name: 'llamacpp:requests_processing' },
  { fact: 'waitingCount', name: 'llamacpp:requests_deferred' },
  { fact: 'kvUsageRatio', name: 'llamacpp:kv_cache_usage_ratio' },
  { fact: 'runningCount', name: 'tgi_batch_current_size' },
  { fact: 'waitingCount', name: 'tgi_queue_size' },
  { fact: 'runningCount', name: 'nv_trt_llm_request_metrics', label: 'request_type="scheduled"' },
  { fact: 'waitingCount', name: 'nv_trt_llm_request_metrics', label: 'request_type="waiting"' },
  { fact: 'kvUsageRatio', name: 'nv_trt_llm_kv_cache_block_metrics', label: 'kv_cache_block_type="fraction"' },
  { fact: 'waitingCount', name: 'nv_inference_pending_request_count' },
]

export function readEngineGauges(page: string): EngineGauges {
  const byFact = new Map<keyof EngineGauges, Map<string, number>>()
  let firstName: Partial<Record<keyof EngineGauges, string>> = {}
  for (let at = 0; at < page.length; ) {
    const newline = page.indexOf('\n', at)
    const end = newline < 0 ? page.length : newline
    if (page.charCodeAt(at) !== 35) firstName = readLine(page.slice(at, end).trimEnd(), byFact, firstName)
    at = end + 1
  }
  const gauges: { -readonly [K in keyof EngineGauges]: number } = {}
  for (const [fact, ranks] of byFact) {
    const values = [...ranks.values()]
    gauges[fact] =
      fact === 'kvUsageRatio'
        ? values.reduce((most, value) => Math.max(most, value))
        : values.reduce((sum, value) => sum + value, 0)
  }
  return gauges
}

/** Each fact is read under the name that came first: an engine with two names for it would be counted twice. */
function readLine(
  line: string,
  byFact: Map<keyof EngineGauges, Map<string, number>>,
  firstName: Partial<Record<keyof EngineGauges, string>>,
): Partial<Record<keyof EngineGauges, string>> {
  const known = NAMES.find(({ name, label }) => isLineOf(line, name) && (label === undefined || line.includes(label)))
  if (known === undefined) return firstName
  const { fact, name } = known
  if ((firstName[fact] ?? name) !== name) return firstName
  const value = gaugeValue(line)
  if (value === undefined) return firstName
  const rank = /dp_rank="([^"]*)"/.exec(line)?.[1] ?? ''
  const ranks = byFact.get(fact) ?? new Map<string, number>()
  // Triton has one line per model.
  const key = name === 'nv_inference_pending_request_count' ? line.slice(0, line.indexOf('}')) : rank
  ranks.set(key, Math.max(ranks.get(key) ?? 0, value))
  byFact.set(fact, ranks)
  return { ...firstName, [fact]: name }
}

/**
 * Whether the page is that of an engine that can send its usage with every frame: vLLM, and SGLang since late 2025. Older
 * ones ignore the wish; a front end that refuses it is asked without.
 */
export const sendsRunningUsage = (page: string): boolean => RUNNING_USAGE_NAMES.test(page)

const RUNNING_USAGE_NAMES = /^(?:vllm|sglang):/m

function isLineOf(line: string, name: string): boolean {
  if (!line.startsWith(name)) return false
  const next = line[name.length]
  return next === '{' || next === ' '
}

/** `name{labels} value [timestamp]`. */
function gaugeValue(line: string): number | undefined {
  const labelsEnd = line.lastIndexOf('}')
  const rest = labelsEnd >= 0 ? line.slice(labelsEnd + 1) : line.slice(line.indexOf(' '))
  const value = Number(rest.trim().split(' ')[0])
  return Number.isFinite(value) ? value : undefined
}
