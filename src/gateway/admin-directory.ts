import { authenticate, digestOf, type KeyDirectory, NO_VALID_KEY } from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/** The administrators' keys. A tenant's key is not accepted here. */
export class AdminDirectory {
  #ids: ReadonlyMap<string, string> = new Map()
  readonly #tenants: KeyDirectory

  constructor(keys: ReadonlyArray<{ readonly id: string; readonly hash: string }>, tenants: KeyDirectory) {
    this.#tenants = tenants
    this.replace(keys)
  }

  /** Other keys open it, from the next request on. */
  replace(keys: ReadonlyArray<{ readonly id: string; readonly hash: string }>): void {
    this.#ids = new Map(keys.map(({ id, hash }) => [hash.replace(/^sha256:/, ''), id]))
  }

  /** The key's id, or why it is turned away. */
  whoIs(authorization: string | undefined): string | ToldRefusal<KeyCode> {
    const token = /^bearer +(\S{1,500}) *$/i.exec(authorization ?? '')?.[1]
    const id = token === undefined ? undefined : this.#ids.get(digestOf(token))
    if (id !== undefined) return id
    if (authenticate(this.#tenants, authorization) !== undefined) return NOT_ADMIN
    return NO_VALID_KEY
  }
}

const NOT_ADMIN: ToldRefusal<KeyCode> = {
  code: 'not-admin',
  because: 'This key belongs to a tenant; the admin API needs a key of its own.',
  blame: 'request',
  retryAfterUs: undefined,
}
