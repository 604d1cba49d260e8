import { assert } from '../base/assert.ts'
import type { PrefixCache } from './prefix-cache.ts'

/**
 * How much of the key-value memory is left?
 *
 *     total = blank + idle units · unitBlocks   (free: nobody uses them)
 *           + own blocks of sequences + held units · unitBlocks                                        (law L8)
 *
 * Blocks without a name are all alike, so they are a count, not a list: taking sixteen costs one subtraction. Named
 * ones live in the prefix cache. Blank blocks go first; only then is the cache's oldest unit forgotten. (vLLM keeps
 * both in one queue by time of release, and so evicts names while blank blocks are left; we keep what may be of use.)
 */
export class BlockPool {
  readonly blockCount: number
  readonly unitBlocks: number
  readonly #cache: PrefixCache
  #blank: number
  #evictedUnits = 0

  constructor(options: { blockCount: number; unitBlocks: number; cache: PrefixCache }) {
    this.blockCount = options.blockCount
    this.unitBlocks = options.unitBlocks
    this.#cache = options.cache
    this.#blank = options.blockCount
  }

  get freeBlocks(): number {
    return this.#blank + this.#cache.idleUnits * this.unitBlocks
  }

  /** Blocks that some sequence holds, named or not. */
  get usedBlocks(): number {
    return this.blockCount - this.freeBlocks
  }

  get evictedUnits(): number {
    return this.#evictedUnits
  }

  /** Takes blank blocks, evicting as needed. The caller has made sure that there are enough. */
  take(count: number): void {
    while (this.#blank < count) {
      assert(this.#cache.idleUnits > 0, 'blocks are taken only when free')
      this.#cache.evictOldest()
      this.#evictedUnits++
      this.#blank += this.unitBlocks
    }
    this.#blank -= count
  }

  give(count: number): void {
    this.#blank += count
  }
}
