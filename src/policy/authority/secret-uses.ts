/**
 * When was each secret used last?
 *
 * Told so that an administrator knows when the old secret of a rotation can go. Written on every request, so these times
 * are not part of the tree: a map that the store's writer empties from time to time, batch by batch, of the secrets that were used since.
 * Times are whole minutes, so that a busy key costs the store one row a minute at most.
 *
 * The map is bounded. When it is full, uses of further secrets are not noted until the writer has come; the map counts
 * them.
 */
export const USES_MAX = 500_000

const MINUTE_MS = 60_000

export class SecretUses {
  readonly #max: number
  readonly #unwritten = new Map<string, number>()
  #droppedCount = 0

  constructor(max = USES_MAX) {
    this.#max = max
  }

  /** Uses that were not noted because the map was full. */
  get droppedCount(): number {
    return this.#droppedCount
  }

  note(hash: string, nowMs: number): void {
    const minute = nowMs - (nowMs % MINUTE_MS)
    const known = this.#unwritten.get(hash)
    if (known !== undefined && known >= minute) return
    if (known === undefined && this.#unwritten.size >= this.#max) this.#droppedCount++
    else this.#unwritten.set(hash, minute)
  }

  /** The last use that was not taken yet. */
  lastUse(hash: string): number | undefined {
    return this.#unwritten.get(hash)
  }

  /** A secret that is gone. */
  forget(hash: string): void {
    this.#unwritten.delete(hash)
  }

  /** Secrets with a use that was not taken yet. */
  get count(): number {
    return this.#unwritten.size
  }

  /** Uses that were not taken yet, by hash: those that wait longest, and no more than this many. */
  take(max: number): ReadonlyMap<string, number> {
    const taken = new Map<string, number>()
    for (const [hash, atMs] of this.#unwritten) {
      if (taken.size >= max) break
      taken.set(hash, atMs)
      this.#unwritten.delete(hash)
    }
    return taken
  }

  /** Puts back what could not be written; later uses win. */
  putBack(uses: ReadonlyMap<string, number>): void {
    for (const [hash, atMs] of uses) this.note(hash, atMs)
  }
}
