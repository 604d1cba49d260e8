import { hash } from 'node:crypto'
import type { Refusal } from '../domain/outcome.ts'
import type { Key, Tenant } from '../domain/tenant.ts'

/**
 * Who is calling? Keys are known only by their SHA-256: whoever reads the configuration or a dump of memory cannot
 * call with it. The hash of a presented key is looked up, so comparing takes no longer for a near miss.
 */
export interface Caller {
  readonly tenant: Tenant
  readonly key: Key
}

export interface KeyDirectory {
  /** The caller behind this hex digest, if there is one. */
  byHash(digest: string): Caller | undefined
}

/** A bearer token longer than this is not one of ours, and we do not hash megabytes for strangers. */
const TOKEN_LENGTH_MAX = 512

export function authenticate(directory: KeyDirectory, authorization: string | undefined): Caller | undefined {
  if (authorization === undefined || authorization.length > TOKEN_LENGTH_MAX) return undefined
  const token = tokenOf(authorization)
  return token === undefined ? undefined : directory.byHash(digestOf(token))
}

/** As nearly everybody sends it, or as HTTP allows it. */
function tokenOf(authorization: string): string | undefined {
  if (authorization.startsWith('Bearer ') && !authorization.includes(' ', 7)) return authorization.slice(7)
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
}

export function digestOf(token: string): string {
  return hash('sha256', token, 'hex')
}

export const NO_VALID_KEY: Refusal = {
  code: 'invalid-api-key',
  because: 'No valid API key was sent.',
  blame: 'request',
  retryAfterUs: undefined,
}
