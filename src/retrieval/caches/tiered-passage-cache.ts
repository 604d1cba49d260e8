import type { CachedPassages, CacheKey, PassageCache } from './passage-cache.ts'

/** Looks in this process first, then in the shared cache; an entry found there is stored here too. */
export class TieredPassageCache implements PassageCache {
  readonly #near: PassageCache
  readonly #far: PassageCache

  constructor(near: PassageCache, far: PassageCache) {
    this.#near = near
    this.#far = far
  }

  get(key: CacheKey): CachedPassages | undefined | Promise<CachedPassages | undefined> {
    return this.#near.get(key) ?? this.#askFar(key)
  }

  set(key: CacheKey, entry: CachedPassages): void {
    this.#near.set(key, entry)
    this.#far.set(key, entry)
  }

  async forgetTenant(tenantId: string): Promise<void> {
    await Promise.all([this.#near.forgetTenant(tenantId), this.#far.forgetTenant(tenantId)])
  }

  async close(): Promise<void> {
    await Promise.all([this.#near.close(), this.#far.close()])
  }

  async #askFar(key: CacheKey): Promise<CachedPassages | undefined> {
    const found = await this.#far.get(key)
    if (found !== undefined) this.#near.set(key, found)
    return found
  }
}
