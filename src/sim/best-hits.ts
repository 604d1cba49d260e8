/**
 * The best possible prefix hits: one unbounded cache for the whole fleet, which has every prompt as soon as it is sent.
 * Placements are measured against this bound.
 *
 * Beyond `NAMES_MAX` different blocks it gives up and reports nothing, rather than something wrong.
 */
const NAMES_MAX = 2_000_000

export interface HitCount {
  readonly hits: number
  readonly queries: number
}

export class BestHits {
  readonly #blockTokens: number
  readonly #seen = new Map<string, Set<number>>()
  #names = 0
  #hits = 0
  #queries = 0

  constructor(blockTokens = 16) {
    this.#blockTokens = blockTokens
  }

  /** Undefined when there were too many block names. */
  get count(): HitCount | undefined {
    return this.#names > NAMES_MAX ? undefined : { hits: this.#hits, queries: this.#queries }
  }

  /** A prompt is sent to an engine. `salt` keeps tenants apart, as in engines. */
  sent(salt: string, hashes: readonly number[], promptTokens: number): void {
    if (hashes.length === 0 || this.#names > NAMES_MAX) return
    const seen = this.#seen.get(salt) ?? new Set<number>()
    this.#seen.set(salt, seen)
    let held = 0
    while (held < hashes.length && seen.has(hashes[held] as number)) held++
    for (let i = held; i < hashes.length; i++) seen.add(hashes[i] as number)
    this.#names += hashes.length - held
    this.#queries += promptTokens
    // At least one token is computed, however much is cached.
    this.#hits += Math.min(held, Math.floor((promptTokens - 1) / this.#blockTokens)) * this.#blockTokens
  }
}
