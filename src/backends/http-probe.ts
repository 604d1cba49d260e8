import type { ReplicaReport } from '../lifecycle/ports.ts'
import { readEngineGauges } from '../wire/engine-gauges.ts'
import { type Got, get, isOk } from './http-get.ts'
import type { HttpUpstream } from './http-upstream.ts'

/**
 * Is this replica ready, and how busy is it? Each kind of engine has its own path to ask; names of gauges are known by
 * `wire/engine-gauges.ts`, whatever page they are on. Paths are from the server's root: probes live beside the API, not
 * under it.
 *
 *   vLLM, SGLang, TGI   /health, /metrics
 *   llama.cpp           /health (503 while it loads its model), /metrics if it was started with them
 *   Triton's OpenAI     /health/ready, /metrics
 *   Ollama              /api/version: it loads models when they are asked for, so it is ready when it is there
 *   OpenAI, Azure       the list of models; nothing is told of how busy they are
 */
export type EngineName = 'vllm' | 'sglang' | 'llama.cpp' | 'tgi' | 'ollama' | 'openai' | 'azure' | 'triton'

export type ProbeStyle =
  /** `/health`, then the list of models. */
  | { readonly kind: 'auto' }
  /** The list of models alone. */
  | { readonly kind: 'models'; readonly path?: string }
  /** This path from the server's root: 2xx is ready. */
  | { readonly kind: 'path'; readonly path: string; readonly metricsPath?: string }
  /** Not at all, for a hosted API that charges for every request; its failed attempts show its health. */
  | { readonly kind: 'none' }

const METRICS = '/metrics'
const HEALTH: ProbeStyle = { kind: 'path', path: '/health', metricsPath: METRICS }

const STYLES: Readonly<Record<EngineName | 'auto' | 'none', ProbeStyle>> = {
  auto: { kind: 'auto' },
  none: { kind: 'none' },
  vllm: HEALTH,
  sglang: HEALTH,
  'llama.cpp': HEALTH,
  tgi: HEALTH,
  triton: { kind: 'path', path: '/health/ready', metricsPath: METRICS },
  ollama: { kind: 'path', path: '/api/version' },
  openai: { kind: 'models' },
  // A deployment has no list of models; its resource has.
  azure: { kind: 'models', path: '/openai/models' },
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
  return { kind: 'path', path, ...(metricsPath === undefined ? {} : { metricsPath }) }
}

/** Hears the page of metrics, wherever one is read. */
type PageReader = (page: string) => void

export async function probeOpenAi(
  upstream: HttpUpstream,
  style: ProbeStyle,
  onPage?: PageReader,
): Promise<ReplicaReport> {
  if (style.kind === 'none') return { isReady: true, because: 'it is not probed; its attempts tell' }
  if (style.kind === 'models') return askModels(upstream, style.path)
  const healthPath = style.kind === 'path' ? style.path : '/health'
  const health = await get(upstream, healthPath)
  const metricsPath = style.kind === 'path' ? style.metricsPath : METRICS
  if (isOk(health)) return withGauges(upstream, metricsPath, onPage)
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
): Promise<ReplicaReport> {
  const report = { isReady: true, because: 'it says that it is healthy' }
  if (metricsPath === undefined) return report
  const metrics = await get(upstream, metricsPath)
  if (!isOk(metrics)) return report
  onPage?.(metrics.text)
  return { ...report, ...readEngineGauges(metrics.text) }
}
