/** What is asked of a pool that has engines in common with others. */
interface TurnPool {
  readonly queuedCount: number
  grantedCount: number
  readonly roomGrowth: number
}

/**
 * Which pool goes next, where several pools have an engine in common?
 *
 * Within a pool the order of turns is between tenants. Between pools it is start-time fair queueing (Goyal, Vin and Cheng,
 * 1996) with equal weights: the pool that has been charged least goes first, one turn at a time. Pools are charged what
 * their tenants are: the predicted cost with the turn, the rest when it is known. All bands that wait for an answer go
 * before offline work, whichever pool that is of.
 *
 * A pool that had nothing waiting has nothing to catch up: it begins where the pool that went last stood. A pool that
 * waits and cannot go (its heads are too big, its replica is not ready) may be behind by `LAG_COST_MAX` and no more, so that
 * it does not take every turn when it can go again.
 *
 * Pools that are connected by common engines are one group: a turn that comes back in one of them may make room in any.
 * What a pool has had at engines of its own counts, too: the common engine then goes to the pool that has no other.
 *
 * Deliberately not: no weights of pools (give tenants weights), no order of tenants across pools.
 *
 * Laws: L6 (every pool of a group is asked until none can go). No starvation: of two pools that can go, neither is charged
 * more than `LAG_COST_MAX` and one turn between two turns of the other.
 *
 * Worked example: a has been charged 900, b 500, and both wait for the one engine: b goes, at a cost of 300; then b again
 * (800); then a.
 */
/** Cost: the work of some fifty ordinary answers, a few seconds of one engine. */
const LAG_COST_MAX = 65_536

export class CommonTurns<P extends TurnPool> {
  readonly members: ReadonlyArray<PoolTurns<P>>
  /** What the pool that went last had been charged before. */
  startedAt: number

  /** With what each pool was charged in the groups that it was in before. */
  constructor(pools: readonly P[], before: (pool: P) => PoolTurns<P> | undefined) {
    this.startedAt = Math.max(0, ...pools.map((pool) => before(pool)?.group.startedAt ?? 0))
    this.members = pools.map((pool) => new PoolTurns(this, pool, before(pool)?.charged ?? 0))
  }

  /** The pools that wait, the least charged first. */
  inOrder(): readonly P[] {
    const most = this.members.reduce((max, { charged }) => Math.max(max, charged), 0)
    const waiting = this.members.filter((member) => member.look(most - LAG_COST_MAX))
    return waiting.toSorted((a, b) => a.charged - b.charged).map(({ pool }) => pool)
  }

  /** Counts every event that can have made room in one of the pools. */
  get growth(): number {
    return this.members.reduce((sum, { pool }) => sum + pool.roomGrowth, 0)
  }
}

/** What one pool has had of what it has in common with others. */
export class PoolTurns<P extends TurnPool> {
  readonly group: CommonTurns<P>
  readonly pool: P
  charged: number
  #isWaiting = false

  constructor(group: CommonTurns<P>, pool: P, charged: number) {
    this.group = group
    this.pool = pool
    this.charged = charged
  }

  takeTurn(cost: number): void {
    const { group } = this
    group.startedAt = Math.max(group.startedAt, this.charged)
    this.charged += cost
    // A turn of another pool is a turn that this pool's passed-over heads have let by.
    for (const { pool } of group.members) if (pool !== this.pool) pool.grantedCount++
  }

  charge(cost: number): void {
    this.charged += cost
  }

  /** Whether something waits; a pool that begins to wait has nothing to catch up. */
  look(chargedMin: number): boolean {
    const wasWaiting = this.#isWaiting
    this.#isWaiting = this.pool.queuedCount > 0
    if (this.#isWaiting && !wasWaiting) this.charged = Math.max(this.charged, this.group.startedAt)
    this.charged = Math.max(this.charged, chargedMin)
    return this.#isWaiting
  }
}

/** What is connected by common members is one set. */
export function connected<P>(lists: Iterable<readonly P[]>): ReadonlySet<ReadonlySet<P>> {
  const setOf = new Map<P, ReadonlySet<P>>()
  for (const list of lists) {
    const joined = new Set(list.flatMap((one) => [...(setOf.get(one) ?? [one])]))
    for (const one of joined) setOf.set(one, joined)
  }
  return new Set(setOf.values())
}
