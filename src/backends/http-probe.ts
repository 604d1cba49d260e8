import type { ReplicaReport } from '../lifecycle/ports.ts'
import { readEngineGauges } from '../wire/engine-gauges.ts'
import { type Got, get, isOk } from './http-get.ts'
import type { HttpUpstream } from './http-upstream.ts'

/**
 * Is this replica ready, and how busy is it? Each kind of engine has its own path to ask; names of gauges are known by
 * `wire/engine-gauges.ts`, whatever page they are on. Paths are from the server's root: probes live beside the API, not
 * under it.
 *
 *   vLLM, TGI           /health, /metrics
 *   SGLang              the same, but its /health generates a token and takes a second, and as long again for every second
 *                       that a step lasts: it has more time
 *   llama.cpp           /health (503 while it loads its model), /metrics if it was started with them
 *   Triton's OpenAI     /health/ready, /metrics
 *   Ollama              /api/version: it loads models when they are asked for, so it is ready when it is there
 *   OpenAI, Azure       the list of models; nothing is told of how busy they are
 *   Vertex, SageMaker   whether the service answers at all: what is behind an endpoint is not told to those who call it
 *   Azure ML            as `auto`: paths go to the container
 */
export type EngineName =
  | 'vllm'
  | 'sglang'
  | 'llama.cpp'
  | 'tgi'
  | 'ollama'
  | 'openai'
  | 'azure'
  | 'triton'
  | 'azure-ml'
  | 'vertex'
  | 'sagemaker'

export type ProbeStyle =
  /** `/health`, then the list of models. */
  | { readonly kind: 'auto' }
  /** The list of models alone. */
  | { readonly kind: 'models'; readonly path?: string }
  /** This path from the server's root: 2xx is ready. */
  | { readonly kind: 'path'; readonly path: string; readonly metricsPath?: string; readonly isSlow?: boolean }
  /** Any answer to this path but one of a failing server, or of one that does not know us. */
  | { readonly kind: 'answers'; readonly path: string }
  /** Not at all, for a hosted API that charges for every request; its failed attempts show its health. */
  | { readonly kind: 'none' }

const METRICS = '/metrics'
/** Milliseconds for a slow `/health`, and for the gauges after it; together they stay below the longest probe, 5 s. */
const SLOW_HEALTH_MS = 3_000
const METRICS_AFTER_SLOW_MS = 1_500
const HEALTH: ProbeStyle = { kind: 'path', path: '/health', metricsPath: METRICS }

const STYLES: Readonly<Record<EngineName | 'auto' | 'none', ProbeStyle>> = {
  auto: { kind: 'auto' },
  none: { kind: 'none' },
  vllm: HEALTH,
  sglang: { ...HEALTH, isSlow: true },
  'llama.cpp': HEALTH,
  tgi: HEALTH,
  triton: { kind: 'path', path: '/health/ready', metricsPath: METRICS },
  ollama: { kind: 'path', path: '/api/version' },
  openai: { kind: 'models' },
  // A deployment has no list of models; its resource has.
  azure: { kind: 'models', path: '/openai/models' },
  'azure-ml': { kind: 'auto' },
  vertex: { kind: 'answers', path: '/' },
  sagemaker: { kind: 'answers', path: '/ping' },
}

/** How to probe this engine; a configured path wins over the usual one. */
export function probeStyleOf(
  engine: EngineName | 'auto' | 'none',
  given: { readonly healthPath?: string | undefined; readonly metricsPath?: string | undefined } = {},
): ProbeStyle {
  const usual = STYLES[engine]
  const path = given.healthPath ?? (usual.kind === 'path' ? usual.path : undefined)
  const metricsPath = given.metricsPath ?? (usual.kind === 'path' ? usual.metricsPath : undefined)
  if (path === undefined) return usual
  const isSlow = usual.kind === 'path' && usual.isSlow === true && given.healthPath === undefined
  return { kind: 'path', path, ...(metricsPath === undefined ? {} : { metricsPath }), ...(isSlow && { isSlow }) }
}

/** Hears the page of metrics, wherever one is read. */
type PageReader = (page: string) => void

export async function probeOpenAi(
  upstream: HttpUpstream,
  style: ProbeStyle,
  onPage?: PageReader,
  isKnownSlow = false,
): Promise<ReplicaReport> {
  if (style.kind === 'none') return { isReady: true, because: 'it is not probed; its attempts tell' }
  if (style.kind === 'models') return askModels(upstream, style.path)
  if (style.kind === 'answers') {
    const got = await get(upstream, style.path)
    const isThere = got.status > 0 && got.status < 500 && got.status !== 401
    return isThere ? { isReady: true, because: 'its service answers' } : notReady('the service', got)
  }
  const healthPath = style.kind === 'path' ? style.path : '/health'
  const isSlow = style.kind === 'path' ? style.isSlow === true : isKnownSlow
  const health = await get(upstream, healthPath, isSlow ? SLOW_HEALTH_MS : undefined)
  const metricsPath = style.kind === 'path' ? style.metricsPath : METRICS
  if (isOk(health)) return withGauges(upstream, metricsPath, onPage, isSlow ? METRICS_AFTER_SLOW_MS : undefined)
  if (style.kind === 'path' || (health.status !== 404 && health.status !== 405)) return notReady(healthPath, health)
  return askModels(upstream, undefined)
}

async function askModels(upstream: HttpUpstream, path: string | undefined): Promise<ReplicaReport> {
  const models = await get(upstream, path === undefined ? upstream.path('/models') : upstream.rooted(path))
  return isOk(models) ? { isReady: true, because: 'it lists its models' } : notReady('the list of models', models)
}

/** The status or the connection's error, never the server's words, which may quote a credential. */
export const notReady = (what: string, got: Got): ReplicaReport => ({
  isReady: false,
  because: `${what} answered ${got.status || got.text}`,
})

export async function withGauges(
  upstream: HttpUpstream,
  metricsPath: string | undefined,
  onPage?: PageReader,
  timeoutMs?: number,
): Promise<ReplicaReport> {
  const report = { isReady: true, because: 'it says that it is healthy' }
  if (metricsPath === undefined) return report
  const metrics = await get(upstream, metricsPath, timeoutMs)
  if (!isOk(metrics)) return report
  onPage?.(metrics.text)
  return { ...report, ...readEngineGauges(metrics.text) }
}
