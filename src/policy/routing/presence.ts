/**
 * Has this pool anybody to run on, and since when again? A meter of one bit and one instant: a pool that was lost and is
 * back takes its own traffic little by little (`choose-pool.ts`), so it is noted when it returned. The first replica of a
 * pool that starts is no return.
 */
export class Presence {
  #isThere = false
  #isLost = false
  #returnedAt: number | undefined

  /** Undefined when it never was lost. */
  get returnedAt(): number | undefined {
    return this.#returnedAt
  }

  /** True when the pool has just lost its last replica. */
  notice(now: number, readyReplicaCount: number): boolean {
    const isThere = readyReplicaCount > 0
    if (isThere === this.#isThere) return false
    this.#isThere = isThere
    if (isThere && this.#isLost) this.#returnedAt = now
    this.#isLost = !isThere
    return !isThere
  }
}
