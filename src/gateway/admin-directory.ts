import { hash } from 'node:crypto'
import type { Role } from '../domain/actor.ts'
import type { TokenFinding, TokenIdentity } from '../domain/identity.ts'
import { authenticate, digestOfBearer, type KeyBearer, type KeyDirectory, NO_VALID_KEY } from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/** The administrators' keys, and tokens with one of these roles. A tenant's key is not accepted here. */
export class AdminDirectory {
  #ids: ReadonlyMap<string, string> = new Map()
  readonly #tenants: KeyDirectory
  readonly #roles: readonly Role[]

  constructor(
    keys: ReadonlyArray<{ readonly id: string; readonly hash: string }>,
    tenants: KeyDirectory,
    roles: readonly Role[] = [],
  ) {
    this.#tenants = tenants
    this.#roles = roles
    this.replace(keys)
  }

  /** Other keys open it, from the next request on. */
  replace(keys: ReadonlyArray<{ readonly id: string; readonly hash: string }>): void {
    this.#ids = new Map(keys.map(({ id, hash }) => [hash.replace(/^sha256:/, ''), id]))
  }

  /** The name of the key or the token's subject, or why it is turned away. */
  whoIs(bearer: KeyBearer): string | ToldRefusal<KeyCode> {
    if (bearer.proof !== undefined) return this.#whoseToken(bearer, bearer.proof)
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

  #whoseToken(bearer: KeyBearer, proof: TokenFinding): string | ToldRefusal<KeyCode> {
    if (proof.kind === 'known' && proof.identity.roles.some((role) => this.#roles.includes(role))) {
      const name = administratorName(proof.identity)
      bearer.visit?.noteKey(true, name)
      return name
    }
    const caller = authenticate(this.#tenants, bearer)
    return 'code' in caller ? caller : NOT_ADMIN
  }
}

/** The history of changes must say who it was: the subject itself, where it is a name and no free text. */
export function administratorName({ issuerId, subject }: TokenIdentity): string {
  const isName = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/.test(subject)
  return `${issuerId}@${isName ? subject : hash('sha256', subject, 'hex').slice(0, 16)}`
}

export const NOT_ADMIN: ToldRefusal<KeyCode> = {
  code: 'not-admin',
  because: 'This key belongs to a tenant; the admin API and the metrics need keys of their own.',
  blame: 'request',
  retryAfterUs: undefined,
}
