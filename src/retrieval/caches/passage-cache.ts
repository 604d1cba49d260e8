import type { Instant } from '../../base/clock.ts'
import type { Passage } from '../../domain/corpus.ts'

/**
 * What was found before. A key names the tenant, the corpus, the question and how many passages; the entry says which
 * version of the corpus it was found in, so that whoever reads it can tell whether it is still good.
 *
 * `get` may be wrong only by forgetting. Neither method throws, and neither takes longer than a bound of its own.
 */
export interface PassageCache {
  get(key: CacheKey): CachedPassages | undefined | Promise<CachedPassages | undefined>
  set(key: CacheKey, entry: CachedPassages): void
  /** Everything of one tenant. */
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
  /** By rank. */
  readonly passages: readonly Passage[]
}

/** What all keys of a tenant begin with, and no other's. */
export const keyPrefix = (tenantId: string): string => `${tenantId.length}:${tenantId}`

/** The lengths make it unambiguous: no choice of tenant and question can name another's entry. */
export function keyText({ tenantId, corpusId, query, passagesMax }: CacheKey): string {
  return `${keyPrefix(tenantId)}${corpusId.length}:${corpusId}${passagesMax}:${query}`
}
