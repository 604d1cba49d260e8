import type { Dispatcher, Pool } from 'undici'
import type { ReplicaReport } from '../lifecycle/ports.ts'

/**
 * Is this replica ready, and how busy is it? `/health` beside the API is what vLLM, SGLang and llama.cpp answer;
 * where there is none (OpenAI, proxies) the list of models does. vLLM's gauges are read when `/metrics` has them.
 */
const PROBE_TIMEOUT_MS = 2_000
const BODY_BYTES_MAX = 4 << 20

export async function probeOpenAi(pool: Pool, basePath: string, headers: readonly string[]): Promise<ReplicaReport> {
  const health = await get(pool, '/health', headers)
  if (health.status >= 200 && health.status < 300) return withGauges(pool, headers)
  if (health.status !== 404 && health.status !== 405)
    return notReady(`/health answered ${health.status || health.text}`)
  const models = await get(pool, `${basePath}/models`, headers)
  if (models.status >= 200 && models.status < 300) return { isReady: true, because: 'it lists its models' }
  return notReady(`${basePath}/models answered ${models.status || models.text}`)
}

const notReady = (because: string): ReplicaReport => ({ isReady: false, because })

async function withGauges(pool: Pool, headers: readonly string[]): Promise<ReplicaReport> {
  const metrics = await get(pool, '/metrics', headers)
  const report = { isReady: true, because: 'it says that it is healthy' }
  if (metrics.status !== 200) return report
  const runningCount = gauge(metrics.text, 'vllm:num_requests_running')
  const waitingCount = gauge(metrics.text, 'vllm:num_requests_waiting')
  const kvUsageRatio =
    gauge(metrics.text, 'vllm:kv_cache_usage_perc') ?? gauge(metrics.text, 'vllm:gpu_cache_usage_perc')
  return {
    ...report,
    ...(runningCount === undefined ? {} : { runningCount }),
    ...(waitingCount === undefined ? {} : { waitingCount }),
    ...(kvUsageRatio === undefined ? {} : { kvUsageRatio }),
  }
}

/** The value of one gauge in a Prometheus page, whatever its labels. */
function gauge(page: string, name: string): number | undefined {
  for (let at = page.indexOf(`\n${name}`); at >= 0; at = page.indexOf(`\n${name}`, at + 1)) {
    const end = page.indexOf('\n', at + 1)
    const line = page.slice(at + 1, end < 0 ? page.length : end)
    const next = line[name.length]
    if (next !== '{' && next !== ' ') continue
    const value = Number(line.slice(line.lastIndexOf(' ') + 1))
    return Number.isFinite(value) ? value : undefined
  }
  return undefined
}

interface Got {
  readonly status: number
  readonly text: string
}

async function get(pool: Pool, path: string, headers: readonly string[]): Promise<Got> {
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
    const response = await pool.request({
      path,
      method: 'GET',
      headers: [...headers],
      signal,
    } as Dispatcher.RequestOptions)
    let text = ''
    for await (const part of response.body) {
      text += String(part)
      if (text.length > BODY_BYTES_MAX) {
        response.body.destroy()
        break
      }
    }
    return { status: response.statusCode, text }
  } catch (error) {
    return { status: 0, text: (error as { code?: string }).code ?? (error as Error).name }
  }
}
