import { DEMO_ADMIN_KEY } from '../config/demo.ts'
import { adminKeyOfEnvironment, loadConfig } from '../config/load.ts'
import { AdminRefused, type Flag, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'
import { askServer, SERVER_FLAGS, type ServerAsk, serverUrlOf } from './http-server-client.ts'

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
