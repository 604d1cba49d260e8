import { assert } from '../../base/assert.ts'
import type { PoolShare, RoomAllowance } from '../../domain/pool-share.ts'
import type { WeightChange } from '../../domain/share-path.ts'
import type { FairnessName } from '../fairness/fairness.ts'
import type { OrgWeights } from '../fairness/tree-share.ts'
import type { Gauges, Ledger } from '../limits/ledger.ts'
import type { Book } from './book.ts'
import { EngineRoom } from './engine-room.ts'
import { PoolState } from './pool-state.ts'
import { CommonTurns, connected } from './pool-turns.ts'
import { type ReplicaFacts, ReplicaRoom } from './replica-room.ts'
import type { SharedBuffer } from './shared-buffer.ts'

/**
 * What is there to run on, as the dispatcher knows it? The pools and their replicas, and which of them carry reported
 * foreign load that will lapse. Every change answers with the pool in which a ticket may now have room.
 */
export interface ReplicaChange {
  readonly isReady?: boolean
  /** Turns that the replica's health allows; Infinity leaves it to the limit. */
  readonly allowance?: number
  /** Room that this gateway may use of a replica that several gateways share. */
  readonly capacity?: RoomAllowance
  /** KV tokens that the replica's memory holds; a guess bounds what runs together, never what runs alone. */
  readonly kv?: { readonly tokensMax: number; readonly isTold: boolean }
}

export class FleetState {
  readonly pools = new Map<string, PoolState>()
  readonly #rooms = new Map<string, ReplicaRoom>()
  /** By their names, those of replicas that have one. Bound: the replicas. */
  readonly #engines = new Map<string, EngineRoom>()
  /** Rooms that were removed while they had leases out; gone with the first change of the fleet after the last is back. */
  readonly #leaving = new Set<ReplicaRoom>()
  readonly #reported = new Set<ReplicaRoom>()
  readonly #buffer: SharedBuffer
  /** Places of removed replicas, given to new ones, so that lists kept by place stay short. */
  readonly #freePlaces: number[] = []
  #placeCount = 0
  #ordinal = 0
  /** For pools that come later. */
  readonly #orgWeights: OrgWeights

  constructor({ buffer, orgWeights }: Pick<Book, 'buffer' | 'orgWeights'>) {
    this.#buffer = buffer
    this.#orgWeights = orgWeights
  }

  addPool(poolId: string, fairness: FairnessName): PoolState {
    const known = this.pools.get(poolId)
    if (known !== undefined) return known
    const pool = new PoolState(poolId, fairness, { buffer: this.#buffer, orgWeights: this.#orgWeights })
    this.pools.set(poolId, pool)
    for (const [orgId, weight] of this.#orgWeights) pool.reweigh({ kind: 'org', orgId, weight })
    return pool
  }

  reweigh(change: WeightChange): void {
    for (const pool of this.pools.values()) pool.reweigh(change)
  }

  add(facts: ReplicaFacts, fairness: FairnessName): PoolState {
    const { id, poolId } = facts.replica
    assert(!this.#rooms.has(id), 'a replica is added once')
    const pool = this.addPool(poolId, fairness)
    const engine = this.#engineFor(facts)
    const room = new ReplicaRoom(facts, this.#ordinal++, this.#freePlaces.pop() ?? this.#placeCount++, engine)
    engine.join(pool, room)
    if (engine.isCommon) this.#regroup()
    this.#rooms.set(id, room)
    pool.rooms.set(id, room)
    pool.recount()
    return this.grow(room)
  }

  remove(replicaId: string): PoolState | undefined {
    const room = this.#rooms.get(replicaId)
    if (room === undefined) return undefined
    this.#rooms.delete(replicaId)
    this.#reported.delete(room)
    room.isReady = false
    const pool = this.#poolOf(room)
    pool.rooms.delete(replicaId)
    this.#freePlaces.push(room.place)
    this.#settle(pool, room)
    this.#leaving.add(room)
    this.#regroup()
    return pool
  }

  /** The pool must be empty: nothing waits or runs, and its replicas are removed. Its lanes are forgotten with it. */
  removePool(poolId: string): void {
    const pool = this.pools.get(poolId)
    if (pool === undefined) return
    assert(pool.rooms.size === 0 && pool.queuedCount === 0 && pool.heldCount === 0, 'a pool that goes is empty')
    pool.forgetLanes()
    this.pools.delete(poolId)
    this.#regroup()
  }

  /** Leases that are out at a replica; 0 for an unknown replica. */
  heldAt(replicaId: string): number {
    return this.#rooms.get(replicaId)?.own.held ?? 0
  }

  holdingsOf(replicaId: string): Pick<Ledger, 'held' | 'heldContextTokens'> | undefined {
    return this.#rooms.get(replicaId)?.ledger.known
  }

  /** Everything in flight at the replica's engine, whichever pools sent it. */
  ledgerOf(replicaId: string): Ledger | undefined {
    return this.#rooms.get(replicaId)?.ledger
  }

  /** The leases of the replica's own pool there. */
  ownLedgerOf(replicaId: string): Ledger | undefined {
    return this.#rooms.get(replicaId)?.own
  }

  change(replicaId: string, change: ReplicaChange): PoolState | undefined {
    const room = this.#rooms.get(replicaId)
    if (room === undefined) return undefined
    if (change.isReady !== undefined) room.isReady = change.isReady
    if (change.allowance !== undefined) room.allow(change.allowance)
    if (change.capacity !== undefined) room.share(change.capacity)
    if (change.kv !== undefined) {
      room.engine.kvTokensMax = change.kv.tokensMax
      room.engine.kvTokensAlone = change.kv.isTold ? change.kv.tokensMax : Number.POSITIVE_INFINITY
      for (const pool of room.engine.pools) pool.recount()
    }
    return this.#settle(this.#poolOf(room), room)
  }

  /** This gateway's part of a pool has changed. Replicas that the share does not name keep theirs. */
  share(now: number, poolId: string, share: PoolShare): PoolState | undefined {
    const pool = this.pools.get(poolId)
    if (pool === undefined) return undefined
    pool.partMin = share.partMin
    for (const [replicaId, { allowance, others }] of share.rooms) {
      const room = pool.rooms.get(replicaId)
      if (room === undefined) continue
      room.share(allowance)
      room.hear(now, others)
      this.#reported.add(room)
      if (!room.isReady || room.allowance < 1) pool.kept.end(room)
      pool.grown(room)
    }
    pool.recount()
    pool.roomGrowth++
    return pool
  }

  report(now: number, replicaId: string, gauges: Gauges): PoolState | undefined {
    const room = this.#rooms.get(replicaId)
    if (room === undefined) return undefined
    room.ledger.report(now, gauges)
    if (room.ledger.foreignUntil() === undefined) this.#reported.delete(room)
    else this.#reported.add(room)
    return this.grow(room)
  }

  /** When the next report lapses. */
  nextLapseAt(): number | undefined {
    let at: number | undefined
    for (const room of this.#reported) {
      const until = room.ledger.foreignUntil()
      if (until !== undefined && (at === undefined || until < at)) at = until
    }
    return at
  }

  /** Forgets reports that are too old; adds the pools in which that made room. */
  lapse(now: number, changed: Set<PoolState>): void {
    for (const room of this.#reported) {
      if (!room.ledger.lapse(now)) continue
      if (room.ledger.foreignUntil() === undefined) this.#reported.delete(room)
      changed.add(this.grow(room))
    }
  }

  /** When the next lane that is barred may be asked again. */
  nextBarEndAt(): number | undefined {
    let at: number | undefined
    for (const pool of this.pools.values()) {
      const nextAt = pool.barred.count === 0 ? undefined : pool.barred.nextAt()
      if (nextAt !== undefined && (at === undefined || nextAt < at)) at = nextAt
    }
    return at
  }

  /** Asks lanes again whose bar is over; adds their pools. */
  endBars(now: number, changed: Set<PoolState>): void {
    for (const pool of this.pools.values()) {
      if (pool.barred.count > 0 && pool.endBars(pool.barred.due(now))) changed.add(pool)
    }
  }

  /** The replica changed in a way that may have made room. */
  grow(room: ReplicaRoom): PoolState {
    const pool = this.#poolOf(room)
    pool.grown(room)
    return pool
  }

  /** The engine that the replica names, if another pool has it already; else one of the replica's own. */
  #engineFor(facts: ReplicaFacts): EngineRoom {
    const { engineId } = facts.replica
    const engine = (engineId === undefined ? undefined : this.#engines.get(engineId)) ?? new EngineRoom(facts)
    if (engineId !== undefined) this.#engines.set(engineId, engine)
    return engine
  }

  /** A room that was removed belongs to its engine until its leases are back: they still run there. */
  #regroup(): void {
    for (const room of this.#leaving) {
      if (room.own.held > 0) continue
      const { engine, replica } = room
      this.#leaving.delete(room)
      engine.leave(room)
      if (engine.isUnused && replica.engineId !== undefined) this.#engines.delete(replica.engineId)
    }
    const common = [...this.#engines.values()].filter(({ isCommon }) => isCommon)
    const groups = connected(common.map(({ pools }) => pools.flatMap(({ id }) => this.pools.get(id) ?? [])))
    const before = new Map([...this.pools.values()].map((pool) => [pool, pool.turns]))
    for (const pool of this.pools.values()) pool.turns = undefined
    for (const group of groups) {
      const { members } = new CommonTurns([...group], (pool) => before.get(pool))
      for (const turns of members) turns.pool.turns = turns
    }
  }

  #settle(pool: PoolState, room: ReplicaRoom): PoolState {
    pool.recount()
    const isUsable = room.isReady && room.allowance >= 1
    if (!isUsable) pool.kept.end(room)
    return this.grow(room)
  }

  #poolOf(room: ReplicaRoom): PoolState {
    return this.pools.get(room.replica.poolId) as PoolState
  }
}
