import { DEMO_ADMIN_KEY } from '../config/demo.ts'
import { adminKeyOfEnvironment, loadConfig, tenantKeyOfEnvironment } from '../config/load.ts'
import { AdminRefused, type Flag, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'
import { askServer, SERVER_FLAGS, type ServerAsk, type ServerError, serverUrlOf } from './http-server-client.ts'

/** The admin API of a running server. */
export const ADMIN_FLAGS: Readonly<Record<string, Flag>> = {
  ...SERVER_FLAGS,
  key: { type: 'string', short: 'k', value: 'KEY', meaning: 'an admin key (or set SPILLWAY_ADMIN_KEY)' },
  json: JSON_FLAG,
}

export const BECAUSE_FLAG: Readonly<Record<string, Flag>> = {
  because: {
    type: 'string',
    short: 'b',
    value: 'TEXT',
    meaning: 'reason for the change, kept in the history (required)',
  },
}

/** The server's address and a key: `--key`, else the administrator's of the environment, else the demo's. */
export function serverAccessOf(flags: FlagValues): { readonly url: string; readonly key: string } {
  const config = loadConfig({ path: textFlag(flags, 'config') })
  const demoKey = config.file === undefined ? DEMO_ADMIN_KEY : undefined
  const key = textFlag(flags, 'key') ?? adminKeyOfEnvironment() ?? demoKey
  if (key === undefined) {
    throw new UsageError('an admin key is missing. Give --key, or set SPILLWAY_ADMIN_KEY; its hash is in admin.keys.')
  }
  return { url: serverUrlOf(flags, config), key }
}

export class AdminClient {
  readonly #url: string
  readonly #key: string

  constructor(flags: FlagValues) {
    const { url, key } = serverAccessOf(flags)
    this.#url = url
    this.#key = key
  }

  async call<T>(method: ServerAsk['method'], path: string, body?: unknown): Promise<T> {
    const answer = await askServer<T>({ url: this.#url, key: this.#key, method, path: `/admin/v1${path}`, body })
    if (answer.status === 401) {
      throw new UsageError('the server does not know this admin key. Give --key, or set SPILLWAY_ADMIN_KEY.')
    }
    if (!answer.isOk) throw new AdminRefused(answer.body.error?.message ?? `the server answered ${answer.status}`)
    return answer.body
  }
}

/** Flags of commands that operators use, and tenants with a key that manages. */
export const TENANCY_FLAGS: Readonly<Record<string, Flag>> = {
  ...ADMIN_FLAGS,
  key: {
    type: 'string',
    short: 'k',
    value: 'KEY',
    meaning: 'an admin key (or set SPILLWAY_ADMIN_KEY), or a key that manages its org (or set SPILLWAY_KEY)',
  },
}

/**
 * Orgs, tenants and keys of a running server: an admin key's under `/admin/v1`, those of a tenant's key under
 * `/v1/spillway`. Which kind a key is, is known by where it came from, or by the server: an admin API that answers
 * `not_admin` has done nothing, and the call is made again under the other path.
 */
export class TenancyClient {
  readonly #url: string
  readonly #key: string
  #root: '/admin/v1' | '/v1/spillway' = '/admin/v1'

  constructor(flags: FlagValues) {
    const typed = textFlag(flags, 'key') ?? adminKeyOfEnvironment()
    const own = typed === undefined ? tenantKeyOfEnvironment() : undefined
    if (own !== undefined) this.#root = '/v1/spillway'
    const { url, key } = own === undefined ? serverAccessOf(flags) : { url: serverUrlOf(flags), key: own }
    this.#url = url
    this.#key = key
  }

  /** Whether the key is a tenant's; known when the server has answered once. */
  get isOfTenant(): boolean {
    return this.#root === '/v1/spillway'
  }

  async call<T>(method: ServerAsk['method'], path: string, body?: unknown): Promise<T> {
    const ask = () => askServer<T>({ url: this.#url, key: this.#key, method, path: this.#root + path, body })
    let answer = await ask()
    if (answer.status === 403 && answer.body.error?.code === 'not_admin') {
      this.#root = '/v1/spillway'
      answer = await ask()
    }
    if (answer.status === 401) {
      throw new UsageError('the server does not know this key. Give --key, or set SPILLWAY_ADMIN_KEY or SPILLWAY_KEY.')
    }
    if (!answer.isOk) throw new AdminRefused(refusalWords(answer.body.error) ?? `the server answered ${answer.status}`)
    return answer.body
  }
}

/** The message, and what it refers to. */
function refusalWords(error: ServerError | undefined): string | undefined {
  const { rule, authority } = error?.spillway ?? {}
  return rule === undefined ? error?.message : `${error?.message} (rule ${rule}, authority ${authority})`
}

/** The server's address and a tenant's key: `--key`, else that of the environment. */
export function tenantAccessOf(flags: FlagValues): { readonly url: string; readonly key: string } {
  const key = textFlag(flags, 'key') ?? tenantKeyOfEnvironment()
  if (key === undefined) throw new UsageError('a key is missing. Give --key, or set SPILLWAY_KEY.')
  return { url: serverUrlOf(flags), key }
}

export function becauseOf(flags: FlagValues): string {
  const because = textFlag(flags, 'because')?.trim()
  if (because) return because
  throw new UsageError('--because is missing. Give the reason; the history keeps it. Try: --because "cheaper by half"')
}

export function argumentOf(flags: FlagValues, what: string, example: string): string {
  const argument = textFlag(flags, 'argument')
  if (argument === undefined) throw new UsageError(`which ${what}? Try: spillway ${example}`)
  return argument
}

export const under = (path: string, name: string): string => `${path}/${encodeURIComponent(name)}`
