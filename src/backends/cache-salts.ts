import { createHmac } from 'node:crypto'

/**
 * The salts that engines are told: for each cache scope (`cacheScopeOf`) one, a keyed hash (HMAC-SHA256) of its name. A salt
 * does not tell whose it is, nobody can guess one without the secret, and gateways with the same secret tell engines the
 * same salts, so that a conversation finds its beginning through any of them.
 *
 * A client's own salt is part of its scope's name, so it is hashed with the tenant's: whatever a client sends, even a
 * salt that it has seen somewhere, it stays within its own scope.
 *
 * Bound: `SALTS_MAX` salts are remembered, of scopes without a client's salt, which are as many as there are tenants.
 */
const SALTS_MAX = 10_000

export class CacheSalts {
  readonly #secret: () => string
  readonly #known = new Map<string, string>()
  /** The secret of the known salts: a gateway that hears of the common one takes it over. */
  #usedSecret = ''

  constructor(secret: () => string) {
    this.#secret = secret
  }

  readonly of = (scope: string): string => {
    const secret = this.#secret()
    if (secret !== this.#usedSecret) this.#known.clear()
    this.#usedSecret = secret
    const known = this.#known.get(scope)
    if (known !== undefined) return known
    const salt = createHmac('sha256', secret).update(`cache-salt\u0000${scope}`).digest('base64url')
    if (scope.includes('\u0000')) return salt
    if (this.#known.size >= SALTS_MAX) this.#known.clear()
    this.#known.set(scope, salt)
    return salt
  }

  /** Salts that are remembered. */
  get size(): number {
    return this.#known.size
  }
}
