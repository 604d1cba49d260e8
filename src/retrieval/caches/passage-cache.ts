import type { Instant } from '../../base/clock.ts'
import type { Passage } from '../../domain/corpus.ts'

/**
 * A cache of passages. A key names the tenant, the corpus, the question and the number of passages; the entry names the
 * version of the corpus, so that a reader can tell whether it is still valid.
 *
 * A cache may forget, and may not be wrong otherwise. Neither method throws, and each has its own time limit.
 */
export interface PassageCache {
  get(key: CacheKey): CachedPassages | undefined | Promise<CachedPassages | undefined>
  set(key: CacheKey, entry: CachedPassages): void
  /** Forgets everything of one tenant. */
  forgetTenant(tenantId: string): Promise<void>
  close(): Promise<void>
}

export interface CacheKey {
  readonly tenantId: string
  readonly corpusId: string
  readonly query: string
  readonly passagesMax: number
}

export interface CachedPassages {
  readonly version: number
  readonly deletions: number
  readonly storedAt: Instant
  /** Passages by rank. */
  readonly passages: readonly Passage[]
}

/** Prefix of all keys of a tenant, and of no other's. */
export const keyPrefix = (tenantId: string): string => `${tenantId.length}:${tenantId}`

/** The lengths make the key unambiguous: no tenant and question can name another's entry. */
export function keyText({ tenantId, corpusId, query, passagesMax }: CacheKey): string {
  return `${keyPrefix(tenantId)}${corpusId.length}:${corpusId}${passagesMax}:${query}`
}
