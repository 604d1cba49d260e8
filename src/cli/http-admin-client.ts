import { DEMO_ADMIN_KEY } from '../config/demo.ts'
import { adminKeyOfEnvironment, loadConfig } from '../config/load.ts'
import { AdminRefused, CONFIG_FLAG, type Flag, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'

/** The admin API of a running server: one process owns the fleet, and the command line is only a client. */
export const ADMIN_FLAGS: Readonly<Record<string, Flag>> = {
  url: { type: 'string', value: 'URL', meaning: 'the server (default: where the configuration says it listens)' },
  key: { type: 'string', short: 'k', value: 'KEY', meaning: 'an admin key (or set SPILLWAY_ADMIN_KEY)' },
  config: CONFIG_FLAG,
  json: JSON_FLAG,
}

export const BECAUSE_FLAG: Readonly<Record<string, Flag>> = {
  because: { type: 'string', short: 'b', value: 'TEXT', meaning: 'why: kept in the history (required)' },
}

/** A server that does not answer for this long does not answer; the first change opens a database. */
const TIMEOUT_MS = 60_000

export class AdminClient {
  readonly #url: string
  readonly #key: string

  constructor(flags: FlagValues) {
    const config = loadConfig({ path: textFlag(flags, 'config') })
    const { host, port, basePath } = config.server
    this.#url = (textFlag(flags, 'url') ?? `http://${host}:${port}${basePath}`).replace(/\/+$/, '')
    const demoKey = config.file === undefined ? DEMO_ADMIN_KEY : undefined
    const key = textFlag(flags, 'key') ?? adminKeyOfEnvironment() ?? demoKey
    if (key === undefined) {
      throw new UsageError('an admin key is missing. Give --key, or set SPILLWAY_ADMIN_KEY; its hash is in admin.keys.')
    }
    this.#key = key
  }

  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    let response: Response
    try {
      response = await fetch(`${this.#url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
    } catch {
      throw new UsageError(`no server answers at ${this.#url}. Start one with "spillway serve", or give --url.`)
    }
    const text = await response.text()
    let answer: T & { readonly error?: { readonly message: string } }
    try {
      answer = JSON.parse(text) as typeof answer
    } catch {
      throw new UsageError(`what answers at ${this.#url} is not Spillway (it said ${response.status}). Give --url.`)
    }
    if (response.status === 401) {
      throw new UsageError('the server does not know this admin key. Give --key, or set SPILLWAY_ADMIN_KEY.')
    }
    if (!response.ok) throw new AdminRefused(answer.error?.message ?? `the server answered ${response.status}`)
    return answer
  }
}

export function becauseOf(flags: FlagValues): string {
  const because = textFlag(flags, 'because')?.trim()
  if (because) return because
  throw new UsageError('--because is missing: why? It is kept in the history. Try: --because "cheaper by half"')
}

export function argumentOf(flags: FlagValues, what: string, example: string): string {
  const argument = textFlag(flags, 'argument')
  if (argument === undefined) throw new UsageError(`which ${what}? Try: spillway ${example}`)
  return argument
}

export const under = (path: string, name: string): string => `${path}/${encodeURIComponent(name)}`
