import { digestOfBearer, type KeyBearer, type KeyDirectory, NO_VALID_KEY } from './authenticate.ts'
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
  whoIs(bearer: KeyBearer): string | ToldRefusal<KeyCode> {
    const digest = digestOfBearer(bearer)
    if (digest === undefined) return NO_VALID_KEY
    const id = this.#ids.get(digest)
    const isTenant = id === undefined && this.#tenants.byHash(digest) !== undefined
    bearer.visit?.noteKey(id !== undefined || isTenant)
    return id ?? (isTenant ? NOT_ADMIN : NO_VALID_KEY)
  }

  /** Why the request is turned away; undefined when its key is one of these. */
  refuse(bearer: KeyBearer): ToldRefusal<KeyCode> | undefined {
    const by = this.whoIs(bearer)
    return typeof by === 'string' ? undefined : by
  }
}

const NOT_ADMIN: ToldRefusal<KeyCode> = {
  code: 'not-admin',
  because: 'This key belongs to a tenant; the admin API and the metrics need keys of their own.',
  blame: 'request',
  retryAfterUs: undefined,
}
