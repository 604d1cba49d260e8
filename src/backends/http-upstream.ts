import type { Dispatcher } from 'undici'
import { type Authorizer, authorizedHeaders, sendAuthorized } from './http-authorized.ts'
import { type PlainAsk, PlainPool } from './http-plain-pool.ts'
import { makeUpstreamPool, type UpstreamPool } from './http-undici-pool.ts'

/**
 * Access to one server: address, credential, TLS and a pool of kept-alive connections. Every HTTP backend, probe and
 * registry client uses it, so that a credential is in one place only. The credential is never logged: it is in private
 * fields, and everything that a server says passes through `redact` first.
 */
export interface HttpUpstreamOptions {
  /** The URL may have a path, which precedes every requested path, and a query, which follows it. */
  readonly url: string
  readonly apiKey?: string | undefined
  /**
   * `bearer`: authorization header. `api-key`: Azure's header. `none`: no key is sent. Otherwise the name of a header.
   */
  readonly auth?: 'bearer' | 'api-key' | 'none' | { readonly header: string }
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of `apiKey`: a token that ends, or a signature. */
  readonly authorizer?: Authorizer | undefined
  /** What stands between the server's answer to a `post` and its reader, where the server wraps it up. */
  readonly unwraps?: ((reader: Dispatcher.DispatchHandler) => Dispatcher.DispatchHandler) | undefined
  readonly tls?: TlsOptions | undefined
  readonly connectTimeoutMs?: number
  /** Longest silence: until the headers, and between two pieces of the body. */
  readonly silenceMsMax?: number
  readonly connectionsMax?: number
}

/** PEM texts. */
export interface TlsOptions {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly serverName?: string
  /** False accepts any certificate: for a laboratory. */
  readonly isVerified?: boolean
}

/** A call with a small body, for a probe or a registry. */
export interface SmallCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers: readonly string[]
  readonly body?: string
  readonly signal?: AbortSignal
}

export const HTTP_UPSTREAM_DEFAULTS = {
  /** A replica that does not accept a connection within this time counts as down. */
  connectTimeoutMs: 3_000,
  /** Long prompts prefill for many seconds before the first byte; a minute of silence beyond that is a hang. */
  silenceMsMax: 120_000,
  /** Above any concurrency limit of one replica. */
  connectionsMax: 8_192,
  /** Servers close idle connections after 5 s (Node, uvicorn) to 60 s; their hint is honoured where they send one. */
  keepAliveMs: 4_000,
} as const

/** Shorter values are words, not secrets: removing them would only mangle messages. */
const SECRET_CHARS_MIN = 8
/** The newest ones; whatever is older has been changed many times since. */
const SECRETS_HIDDEN_MAX = 16
/** Keys that a server quotes back, in the usual shapes, masked ones too. */
const KEY_SHAPES = /\b(?:sk|pk|hf|gsk|nvapi|key|Bearer)[-_ ][\w*.-]{8,}/g

export class HttpUpstream {
  /** For everything but `post` without TLS. */
  readonly pool: UpstreamPool
  readonly #plain: PlainPool | undefined
  readonly #basePath: string
  readonly #query: string
  readonly #options: HttpUpstreamOptions
  #headers: readonly string[]
  #secrets: readonly string[]

  constructor(options: HttpUpstreamOptions) {
    this.#options = options
    const url = new URL(options.url)
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.#query = url.search
    const { headers, secrets } = makeHeaders(options, url)
    this.#headers = headers
    this.#secrets = secrets
    const limits = { ...HTTP_UPSTREAM_DEFAULTS, ...withoutUndefined(options) }
    this.pool = makeUpstreamPool(url.origin, {
      connections: limits.connectionsMax,
      pipelining: 1,
      connectTimeout: limits.connectTimeoutMs,
      headersTimeout: limits.silenceMsMax,
      bodyTimeout: limits.silenceMsMax,
      keepAliveTimeout: limits.keepAliveMs,
      ...(options.tls === undefined ? {} : { connect: connectOptions(options.tls, limits.connectTimeoutMs) }),
    })
    this.#plain = url.protocol === 'http:' ? new PlainPool({ ...limits, ...addressOf(url) }) : undefined
  }

  /** From the next call on with this key: a key that was changed where it is kept. The one before stays hidden, too. */
  useKey(apiKey: string | undefined): void {
    this.#options.authorizer?.useKey?.(apiKey)
    const { headers, secrets } = makeHeaders({ ...this.#options, apiKey }, new URL(this.#options.url))
    this.#headers = headers
    this.#secrets = [...new Set([...secrets, ...this.#secrets])].slice(0, SECRETS_HIDDEN_MAX)
  }

  /** Sends a JSON body; the handler gets the answer. */
  post(ask: PlainAsk, handler: Dispatcher.DispatchHandler): void {
    const { authorizer, unwraps } = this.#options
    const reader = unwraps === undefined ? handler : unwraps(handler)
    if (authorizer === undefined) this.#post(ask, reader)
    else {
      const call = { ...ask, method: 'POST', isRepeatable: true } as const
      sendAuthorized(authorizer, call, reader, (headers, outer) => this.#post({ ...ask, headers }, outer))
    }
  }

  #post(ask: PlainAsk, handler: Dispatcher.DispatchHandler): void {
    if (this.#plain !== undefined) this.#plain.dispatch(ask, handler)
    else this.pool.dispatch({ ...ask, method: 'POST' } as Dispatcher.DispatchOptions, handler)
  }

  /** Sends a body that comes in pieces, and so cannot be sent a second time. */
  postPieces(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const { authorizer } = this.#options
    if (authorizer === undefined) {
      this.pool.dispatch(options, handler)
      return
    }
    const { path, headers: own } = options as { path: string; headers: string[] }
    const call = { path, method: 'POST', headers: own, body: '', isRepeatable: false } as const
    sendAuthorized(authorizer, call, handler, (headers, outer) =>
      this.pool.dispatch({ ...options, headers: [...headers] }, outer),
    )
  }

  /** One call whose answer is read by the caller; again with another credential where the first is refused. */
  async request(call: SmallCall): Promise<Dispatcher.ResponseData> {
    const { authorizer } = this.#options
    if (authorizer === undefined) return this.pool.request(call as Dispatcher.RequestOptions)
    const { method, path, headers: own, body = '' } = call
    const outgoing = { method, path, headers: own, body }
    const { credential, headers } = await authorizedHeaders(authorizer, outgoing)
    const response = await this.pool.request({ ...call, headers } as Dispatcher.RequestOptions)
    if (!authorizer.isRefusal(response.statusCode, response.headers)) return response
    const next = await authorizer.credential.replace(credential)
    if (next === undefined) return response
    await response.body.dump()
    const again = [...own, ...authorizer.headers(next, outgoing)]
    return this.pool.request({ ...call, headers: again } as Dispatcher.RequestOptions)
  }

  /** The path under the address's own path: `/chat/completions` → `/v1/chat/completions`. */
  path(path: string): string {
    return `${this.#basePath}${path}${this.#query}`
  }

  /** The path from the server's root, with the address's own query. */
  rooted(path: string): string {
    return `${path}${this.#query}`
  }

  /** The path beside the version: `/tokenize` → `/tokenize` where the address is `/v1`. */
  besideVersion(path: string): string {
    return `${this.#basePath.replace(/\/v\d+$/, '')}${path}${this.#query}`
  }

  /** The headers of a call whose body is not JSON. */
  headersWith(contentType: string, ...more: string[]): string[] {
    const [, , ...others] = this.#headers
    return ['content-type', contentType, ...others, ...more]
  }

  headers(...more: string[]): string[] {
    return this.headersAnd(more)
  }

  headersAnd(more: readonly string[]): string[] {
    return this.#headers.concat(more)
  }

  /** Removes our credentials from what a server said. */
  redact(text: string): string {
    let clean = text
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, '[redacted]')
    for (const secret of this.#options.authorizer?.credential.secrets ?? []) {
      clean = clean.replaceAll(secret, '[redacted]')
    }
    return clean.replaceAll(KEY_SHAPES, '[redacted]')
  }

  async close(): Promise<void> {
    await Promise.all([this.pool.destroy(), this.#plain?.close()])
  }
}

function addressOf(url: URL): { host: string; port: number; authority: string } {
  // An IPv6 address stands in brackets in a URL, and nowhere else.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return { host, port: url.port === '' ? 80 : Number(url.port), authority: url.host }
}

function makeHeaders(options: HttpUpstreamOptions, url: URL): { headers: string[]; secrets: string[] } {
  const headers = ['content-type', 'application/json']
  const secrets: string[] = []
  const { apiKey, auth = 'bearer' } = options
  if (options.authorizer !== undefined) secrets.push(...(apiKey === undefined ? [] : [apiKey]))
  else if (apiKey !== undefined && auth !== 'none') {
    if (auth === 'bearer') headers.push('authorization', `Bearer ${apiKey}`)
    else headers.push(auth === 'api-key' ? auth : auth.header, apiKey)
    secrets.push(apiKey)
  } else if (url.username !== '') {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.push('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
    secrets.push(pair, decodeURIComponent(url.password))
  }
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers.push(name, value)
    secrets.push(value)
  }
  return { headers, secrets: secrets.filter((secret) => secret.length >= SECRET_CHARS_MIN) }
}

function connectOptions(tls: TlsOptions, timeout: number): Record<string, unknown> {
  const { ca, cert, key, serverName: servername, isVerified } = tls
  return withoutUndefined({ ca, cert, key, servername, rejectUnauthorized: isVerified, timeout })
}

function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
