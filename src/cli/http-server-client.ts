import type { Config } from '../config/schema.ts'
import { type FlagValues, textFlag, UsageError } from './command.ts'

/** A running server, asked over its own API: one process owns the fleet and the store, the command line is a client. */
export interface ServerAsk {
  readonly url: string
  readonly key: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

export interface ServerAnswer<T> {
  readonly status: number
  readonly isOk: boolean
  readonly body: T & { readonly error?: { readonly message: string } }
}

/** A server that does not answer for this long does not answer; the first change opens a database. */
const TIMEOUT_MS = 60_000

/** What `--url` says, else where the configuration says that it listens. */
export function serverUrlOf(flags: FlagValues, config: Config): string {
  const { host, port, basePath } = config.server
  return (textFlag(flags, 'url') ?? `http://${host}:${port}${basePath}`).replace(/\/+$/, '')
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
    return { status: response.status, isOk: response.ok, body: JSON.parse(text) as ServerAnswer<T>['body'] }
  } catch {
    throw new UsageError(`what answers at ${url} is not Spillway (it said ${response.status}). Give --url.`)
  }
}
