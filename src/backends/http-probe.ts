import type { ReplicaReport } from '../lifecycle/ports.ts'
import { readEngineGauges } from '../wire/engine-gauges.ts'
import { type Got, get, isOk } from './http-get.ts'
import type { HttpUpstream } from './http-upstream.ts'

/**
 * Is this replica ready, and how busy is it? `/health` beside the API is what vLLM, SGLang, TGI and llama.cpp answer
 * (the last with 503 while it loads its model); where there is none (OpenAI, Ollama, proxies) the list of models does.
 * Gauges are read where `/metrics` has them.
 */
export type ProbeStyle =
  /** `/health`, then the list of models. */
  | { readonly kind: 'auto' }
  /** This path from the server's root: 2xx is ready. */
  | { readonly kind: 'path'; readonly path: string; readonly metricsPath?: string }
  /** Not at all: a hosted API that counts every question. Its attempts tell. */
  | { readonly kind: 'none' }

export async function probeOpenAi(upstream: HttpUpstream, style: ProbeStyle): Promise<ReplicaReport> {
  if (style.kind === 'none') return { isReady: true, because: 'it is not probed; its attempts tell' }
  const healthPath = style.kind === 'path' ? style.path : '/health'
  const health = await get(upstream, healthPath)
  const metricsPath = style.kind === 'path' ? style.metricsPath : '/metrics'
  if (isOk(health)) return withGauges(upstream, metricsPath)
  if (style.kind === 'path' || (health.status !== 404 && health.status !== 405)) return notReady(healthPath, health)
  const models = await get(upstream, upstream.path('/models'))
  return isOk(models) ? { isReady: true, because: 'it lists its models' } : notReady('the list of models', models)
}

/** The status or the connection's error: never the server's words, which may quote a credential. */
export const notReady = (what: string, got: Got): ReplicaReport => ({
  isReady: false,
  because: `${what} answered ${got.status || got.text}`,
})

export async function withGauges(upstream: HttpUpstream, metricsPath: string | undefined): Promise<ReplicaReport> {
  const report = { isReady: true, because: 'it says that it is healthy' }
  if (metricsPath === undefined) return report
  const metrics = await get(upstream, metricsPath)
  return isOk(metrics) ? { ...report, ...readEngineGauges(metrics.text) } : report
}
