import { HttpOipBackend } from '../backends/http-oip.ts'
import { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { probeStyleOf } from '../backends/http-probe.ts'
import type { HttpUpstreamOptions } from '../backends/http-upstream.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig } from '../config/schema.ts'
import type { PoolSetup } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { readTls } from './fs-tls.ts'

/** The adapter to one engine behind a URL, as the configuration names it. */
type HttpBackendConfig = Exclude<BackendConfig, { kind: 'simulated' }>

/** Hosts whose newer models refuse `max_tokens`, while all of them take `max_completion_tokens`. */
const REFUSES_MAX_TOKENS: ReadonlySet<string> = new Set(['openai', 'azure'])

export function makeHttpBackend(
  setup: PoolSetup,
  backend: HttpBackendConfig,
  replica: Replica,
  clock: Clock,
): HttpOpenAiBackend | HttpOipBackend {
  const upstream = upstreamOf(setup, backend, replica)
  if (backend.kind === 'http-oip') {
    const { upstreamModel = setup.pool.model, version, runtime, template, metricsUrl } = backend
    const style = { runtime, template }
    return new HttpOipBackend({
      ...upstream,
      upstreamModel,
      style,
      clock,
      ...(version !== undefined && { version }),
      ...(metricsUrl !== undefined && { metricsUrl }),
    })
  }
  const { upstreamModel, engine, healthPath, metricsPath, asksUsage, runningUsage, apiVersion, dialects } = backend
  const outputBound = backend.outputBound ?? (REFUSES_MAX_TOKENS.has(engine) ? 'max_completion_tokens' : undefined)
  return new HttpOpenAiBackend({
    ...upstream,
    url: apiVersion === undefined ? upstream.url : withQuery(upstream.url, 'api-version', apiVersion),
    upstreamModel,
    clock,
    probe: probeStyleOf(engine, { healthPath, metricsPath }),
    runningUsage,
    dialects,
    style: { asksUsage, ...(outputBound !== undefined && { outputBound }) },
  })
}

function upstreamOf(setup: PoolSetup, backend: HttpBackendConfig, replica: Replica): HttpUpstreamOptions {
  const { apiKey, auth, headers, timeoutMs } = backend
  return {
    url: setup.urls.get(replica.id) as string,
    apiKey,
    auth,
    headers,
    tls: readTls(backend.tls, `pool ${setup.pool.id}`),
    silenceMsMax: timeoutMs,
  }
}

function withQuery(address: string, name: string, value: string): string {
  const url = new URL(address)
  url.searchParams.set(name, value)
  return url.href
}
