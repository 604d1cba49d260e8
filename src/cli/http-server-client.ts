import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { CONFIG_FLAG, type Flag, type FlagValues, textFlag, UsageError } from './command.ts'

/** A call of a running server's API. The server's process owns the fleet and the store; the command line is a client. */
export interface ServerAsk {
  readonly url: string
  readonly key: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

export interface ServerAnswer<T> {
  readonly status: number
  readonly isOk: boolean
  /** When the server asks to come back; undefined when it does not. */
  readonly retryAfterMs: number | undefined
  readonly body: T & { readonly error?: ServerError }
}

export interface ServerError {
  readonly message: string
  readonly code?: string | null
  readonly spillway?: { readonly rule?: string; readonly authority?: string }
}

/** Time limit of a call; long, because the first change opens a database. */
const TIMEOUT_MS = 60_000

/** The server's address: `--url`, else the one in the configuration, which is read only then. */
export function serverUrlOf(flags: FlagValues, config?: Config): string {
  const url = textFlag(flags, 'url') ?? configuredUrl(config ?? loadConfig({ path: textFlag(flags, 'config') }))
  return url.replace(/\/+$/, '')
}

/** Where a server with this configuration is reached from its own machine. A server on every address is on loopback too. */
export function configuredUrl({ server: { host, port, basePath } }: Config): string {
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${near.includes(':') ? `[${near}]` : near}:${port}${basePath}`
}

/** The flags of commands that call a running server with a tenant's key. */
export const SERVER_FLAGS: Readonly<Record<'url' | 'config', Flag>> = {
  url: { type: 'string', value: 'URL', meaning: 'the server (default: the address in the configuration, and PORT)' },
  config: CONFIG_FLAG,
}

export async function askServer<T>({ url, key, method, path, body }: ServerAsk): Promise<ServerAnswer<T>> {
  let response: Response
  let text: string
  try {
    response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    text = await response.text()
  } catch {
    throw new UsageError(`no server answers at ${url}. Start one with "spillway serve", or give --url.`)
  }
  try {
    const { status, ok: isOk } = response
    const retryAfterS = Number(response.headers.get('retry-after') ?? Number.NaN)
    const retryAfterMs = Number.isFinite(retryAfterS) ? retryAfterS * 1_000 : undefined
    return { status, isOk, retryAfterMs, body: JSON.parse(text) as ServerAnswer<T>['body'] }
  } catch {
    throw new UsageError(`the server at ${url} is not Spillway (it answered ${response.status}). Give --url.`)
  }
}
