import type { TokenIdentity } from '../domain/identity.ts'
import type { Band } from '../domain/tenant.ts'
import { type Caller, callerAgain, digestOfBearer, type KeyBearer, type KeyDirectory } from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/**
 * Whoever made a job, so that its lines run on the same terms hours later, in this process or in another one: the hash
 * of the key, or whom a token was about. A key that is revoked or has expired meanwhile runs no line any more; one that
 * is rotated does, as long as the old secret's grace lasts.
 */
export interface JobCaller {
  readonly digest?: string | undefined
  readonly identity?: TokenIdentity | undefined
  /** Terms of keys may look at the client's address. */
  readonly address: string | undefined
}

export function jobCallerOf(bearer: KeyBearer & { readonly clientAddress: string | undefined }): JobCaller {
  const address = bearer.clientAddress
  if (bearer.proof?.kind === 'known') return { identity: bearer.proof.identity, address }
  return { digest: digestOfBearer(bearer), address }
}

/** The caller in one band, whatever its lines ask for: in `offline` where it may not use the band that is wanted. */
export function callerOfJob(
  keys: KeyDirectory,
  made: JobCaller,
  band: Band = 'offline',
): Caller | ToldRefusal<KeyCode> {
  const caller = callerAgain(keys, made)
  if ('code' in caller) return caller
  const mayUse = (caller.bands ?? caller.tenant.bands).includes(band)
  return { ...caller, bands: [mayUse ? band : 'offline'] }
}
