import type { Instant } from '../../base/clock.ts'
import type { OutputAsk, OutputPair } from '../../domain/output-pair.ts'

/**
 * Which pairs of outputs are kept?
 *
 * The newest, within a number of pairs and of bytes. When one of the bounds is passed, the oldest pair goes of the tenant
 * that holds the largest share of either bound (dominant share, as in dominant resource fairness): of n tenants, one that
 * holds at most a n-th of both loses nothing to the others. A pair goes, too, when its tenant's time for stored answers is
 * over, when the tenant is removed, and when its terms do not allow it any more.
 *
 * Deliberately not: no disk, no database. What is kept ends with the process.
 *
 * Example: at 4 pairs in all, tenant a with 4 pairs and tenant b with its first: a loses its oldest.
 */
const BOUNDS: OutputRingBounds = { pairsMax: 1_000, bytesMax: 8 * 1024 * 1024 }

interface OutputRingBounds {
  readonly pairsMax: number
  readonly bytesMax: number
}

/** What a pair takes beside its texts, about. */
const PAIR_BYTES = 512

interface Held {
  readonly pair: OutputPair
  readonly expiresAt: Instant
  readonly bytes: number
}

interface Shelf {
  /** Oldest first. */
  readonly held: Held[]
  bytes: number
}

export class OutputRing {
  readonly #bounds: OutputRingBounds
  readonly #shelves = new Map<string, Shelf>()
  #count = 0
  #bytes = 0
  /** Removals of tenants so far: a pair that began before one is not kept, because its tenant may be the removed one. */
  #removals = 0

  constructor(bounds: OutputRingBounds = BOUNDS) {
    this.#bounds = bounds
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Names the moment at which a copy begins, for `keep`. */
  get epoch(): number {
    return this.#removals
  }

  keep(pair: OutputPair, { expiresAt, epoch }: { readonly expiresAt: Instant; readonly epoch: number }): void {
    if (epoch !== this.#removals) return
    this.expire(pair.at)
    // A character takes at most two bytes in memory.
    const bytes = 2 * (pair.primary.text.length + pair.shadow.text.length) + PAIR_BYTES
    const shelf = this.#shelves.get(pair.tenantId) ?? { held: [], bytes: 0 }
    this.#shelves.set(pair.tenantId, shelf)
    shelf.held.push({ pair, expiresAt, bytes })
    shelf.bytes += bytes
    this.#count++
    this.#bytes += bytes
    while (this.#count > this.#bounds.pairsMax || this.#bytes > this.#bounds.bytesMax) this.#dropOldest(this.#largest())
  }

  /** Newest first; pairs of tenants that do not allow it any more are forgotten. */
  list(now: Instant, ask: OutputAsk, isAllowed: (tenantId: string) => boolean): readonly OutputPair[] {
    this.expire(now)
    for (const tenantId of this.#shelves.keys()) if (!isAllowed(tenantId)) this.#drop(tenantId)
    const { model, tenantId, limit } = ask
    const found: OutputPair[] = []
    for (const [id, { held }] of this.#shelves) {
      if (tenantId !== undefined && tenantId !== id) continue
      for (const { pair, expiresAt } of held)
        if (expiresAt > now && (model === undefined || model === pair.model)) found.push(pair)
    }
    return found.sort((a, b) => b.at - a.at).slice(0, limit)
  }

  /** The tenant is removed. */
  forget(tenantId: string): void {
    this.#removals++
    this.#drop(tenantId)
  }

  /** Pairs of a tenant expire in order; one whose term was made shorter waits for those before it, and is not listed. */
  expire(now: Instant): void {
    for (const [tenantId, { held }] of this.#shelves)
      while (held[0] !== undefined && held[0].expiresAt <= now) this.#dropOldest(tenantId)
  }

  #largest(): string {
    let largest = ''
    let most = -1
    for (const [tenantId, { held, bytes }] of this.#shelves) {
      const share = Math.max(held.length / this.#bounds.pairsMax, bytes / this.#bounds.bytesMax)
      if (share <= most) continue
      most = share
      largest = tenantId
    }
    return largest
  }

  #dropOldest(tenantId: string): void {
    const shelf = this.#shelves.get(tenantId)
    const oldest = shelf?.held.shift()
    if (shelf === undefined || oldest === undefined) return
    shelf.bytes -= oldest.bytes
    this.#count--
    this.#bytes -= oldest.bytes
    if (shelf.held.length === 0) this.#shelves.delete(tenantId)
  }

  #drop(tenantId: string): void {
    const shelf = this.#shelves.get(tenantId)
    if (shelf === undefined) return
    this.#count -= shelf.held.length
    this.#bytes -= shelf.bytes
    this.#shelves.delete(tenantId)
  }
}
