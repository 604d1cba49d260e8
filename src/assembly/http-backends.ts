import { EngineSalt } from '../backends/engine-salt.ts'
import type { FreshCredential } from '../backends/fresh-credential.ts'
import { type Authorizer, bearerAuthorizer } from '../backends/http-authorized.ts'
import { HttpOipBackend } from '../backends/http-oip.ts'
import { HttpOpenAiBackend } from '../backends/http-openai.ts'
import { probeStyleOf } from '../backends/http-probe.ts'
import { SageMakerAnswer, sageMakerAuthorizer, sageMakerPath, sageMakerRegion } from '../backends/http-sagemaker.ts'
import type { HttpUpstreamOptions } from '../backends/http-upstream.ts'
import { type CredentialSource, liveCredential } from '../backends/live-credential.ts'
import type { Clock } from '../base/clock.ts'
import type { BackendConfig } from '../config/schema.ts'
import type { PoolSetup } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { readTls } from './fs-tls.ts'

/** The adapter to one engine behind a URL, as the configuration names it. */
type HttpBackendConfig = Exclude<BackendConfig, { kind: 'simulated' }>

type CredentialConfig = NonNullable<HttpBackendConfig['credential']>

export interface HttpParts {
  readonly clock: Clock
  /** The salt of a cache scope; absent: engines are told what clients send. */
  readonly saltOf?: ((scope: string) => string) | undefined
}

/** Engines that take `cache_salt`. */
const TAKES_SALT: ReadonlySet<string> = new Set(['vllm', 'sglang'])

/** Hosts whose newer models refuse `max_tokens`, while all of them take `max_completion_tokens`. */
const REFUSES_MAX_TOKENS: ReadonlySet<string> = new Set(['openai', 'azure'])

export function makeHttpBackend(
  setup: PoolSetup,
  backend: HttpBackendConfig,
  replica: Replica,
  { clock, saltOf }: HttpParts,
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
    ...(saltOf !== undefined && {
      salt: new EngineSalt({ wish: backend.cacheSalt, isKnown: TAKES_SALT.has(engine), saltOf }),
    }),
    ...(isSageMaker(backend) && { pathOf: sageMakerPath, unwraps: (reader) => new SageMakerAnswer(reader) }),
    style: { asksUsage, ...(outputBound !== undefined && { outputBound }) },
  })
}

function upstreamOf(setup: PoolSetup, backend: HttpBackendConfig, replica: Replica): HttpUpstreamOptions {
  const { apiKey, auth, headers, timeoutMs, credential } = backend
  const url = setup.urls.get(replica.id) as string
  return {
    ...(credential !== undefined && { authorizer: authorizerOf(backend, credential, url) }),
    url,
    apiKey,
    auth,
    headers,
    tls: readTls(backend.tls, `pool ${setup.pool.id}`),
    silenceMsMax: timeoutMs,
  }
}

const isSageMaker = (backend: HttpBackendConfig): boolean =>
  backend.kind === 'http-openai' && backend.engine === 'sagemaker'

/** The region of addresses that do not name theirs. */
const AWS_REGION = 'us-east-1'

function authorizerOf(backend: HttpBackendConfig, credential: CredentialConfig, url: string): Authorizer {
  if (!isSageMaker(backend)) return bearerAuthorizer(credentialOf(credential))
  const { accessKeyId } = credential
  const terms = { url, region: credential.region ?? sageMakerRegion(url) ?? AWS_REGION }
  if (accessKeyId === undefined) return sageMakerAuthorizer(credentialOf(credential), terms)
  let secretKey = backend.apiKey
  const keys = liveCredential({ kind: 'keys', accessKeyId, secretKey: () => secretKey })
  const useKey = (apiKey: string | undefined): void => {
    secretKey = apiKey
    keys.drop()
  }
  return { ...sageMakerAuthorizer(keys, terms), useKey }
}

/** One for all replicas of a pool: its source is asked once for them. */
const credentials = new WeakMap<CredentialConfig, FreshCredential>()

function credentialOf(config: CredentialConfig): FreshCredential {
  const known = credentials.get(config) ?? liveCredential(sourceOf(config))
  credentials.set(config, known)
  return known
}

/** Exactly one source, as `cross-check.ts` has seen to. */
function sourceOf({ file, command, metadata, resource, clientId }: CredentialConfig): CredentialSource {
  if (file !== undefined) return { kind: 'file', path: file }
  if (command !== undefined) return { kind: 'command', command }
  return { kind: 'metadata', cloud: metadata ?? 'google', resource, clientId }
}

function withQuery(address: string, name: string, value: string): string {
  const url = new URL(address)
  url.searchParams.set(name, value)
  return url.href
}
