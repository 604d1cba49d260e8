import { assert } from '../../base/assert.ts'
import { NOTHING_IN_FLIGHT, type TurnsInFlight, turnsTogether } from '../../domain/pool-share.ts'
import { Ledger } from '../limits/ledger.ts'
import type { Limit } from '../limits/limit.ts'
import type { HeldTurn } from '../limits/relieved-load.ts'

/** One pool's room at the engine. */
interface RoomOfEngine {
  ledger: Ledger
  readonly own: Ledger
  readonly isKept: boolean
}

/** A pool that names the engine. */
interface PoolOfEngine {
  readonly id: string
  roomGrowth: number
  list(room: RoomOfEngine): void
  recount(): void
}

/**
 * What does one engine hold, whichever pools sent it? Its limit, its memory and its ledger. Most engines belong to one
 * pool. An engine that several pools name (several models on one server) is *common* to them: each pool has a
 * `ReplicaRoom` of its own for it, with its own health and its own leases, and all of these refer to one `EngineRoom`.
 * So what runs is counted once, whichever pool it came from, and every pool's room knows when the engine is full.
 *
 *     pool a ── room a ──┐                           a turn of a fills the engine: room b closes, too
 *                        ├── engine: limit · ledger
 *     pool b ── room b ──┘                           a's turn comes back: both pools are asked, the less served first
 *
 * Who goes first is `pool-turns.ts`'s business. Bounds: one room for each pool that names the engine.
 *
 * Laws: L2 (what rooms hold together is what the engine holds), L6 (no pool's list of open rooms is out of date).
 */
export class EngineRoom {
  readonly limit: Limit
  /** KV tokens that the memory holds: declared, told by the engine or guessed; Infinity when unknown. */
  kvTokensMax: number
  /** The same without a guess: only what is known to be there may keep a request from running alone. */
  kvTokensAlone: number
  /** Everything in flight at the engine. */
  ledger = new Ledger()
  /** Offline turns by lease, in the order of their grants. Bound: the leases that are out here. */
  readonly offlineTurns = new Map<number, HeldTurn & { readonly isYielding: boolean }>()
  /** Of those, the ones that were called off and are not yet back. */
  yieldingCount = 0
  /** KV tokens that offline turns hold. */
  offlineKvTokens = 0
  /** Prompts longer than a step that are being read: at most one. */
  longCount = 0
  /** The room that keeps the engine free for a lane of its pool: closed to every other pool. */
  keptBy: RoomOfEngine | undefined = undefined
  /** Several pools name the engine. Asked at every change, so it is kept beside the list. */
  isCommon = false
  readonly #members: Member[] = []

  constructor({ limit, kvTokensMax }: { readonly limit: Limit; readonly kvTokensMax?: number }) {
    this.limit = limit
    this.kvTokensMax = kvTokensMax ?? Number.POSITIVE_INFINITY
    this.kvTokensAlone = this.kvTokensMax
  }

  get isUnused(): boolean {
    return this.#members.length === 0
  }

  get pools(): readonly PoolOfEngine[] {
    return this.#members.map(({ pool }) => pool)
  }

  join(pool: PoolOfEngine, room: RoomOfEngine): void {
    this.#members.push({ pool, room, others: NOTHING_IN_FLIGHT })
    this.isCommon = this.#members.length > 1
    if (!this.isCommon) return
    // The ledger of an engine that was one room's is that room's own.
    if (this.#members.some((member) => member.room.own === this.ledger)) this.ledger = this.ledger.copy()
    for (const member of this.#members) member.room.ledger = this.ledger
  }

  /** The room has no lease out any more. */
  leave(room: RoomOfEngine): void {
    const at = this.#members.findIndex((member) => member.room === room)
    if (at >= 0) this.#members.splice(at, 1)
    this.isCommon = this.#members.length > 1
  }

  /** What the engine holds has changed by one pool's doing: the other pools' lists are set right. */
  listElsewhere(by: RoomOfEngine): void {
    for (const { pool, room } of this.#members) if (room !== by) pool.list(room)
  }

  /** The engine may have room again, in every pool that names it. */
  growElsewhere(by: RoomOfEngine): void {
    for (const { pool, room } of this.#members) if (room !== by) pool.roomGrowth++
  }

  /** What other gateways have in flight here of one pool; the engine has what they have of all of them. */
  hear(now: number, by: RoomOfEngine, others: TurnsInFlight): void {
    let sum = NOTHING_IN_FLIGHT
    for (const member of this.#members) {
      if (member.room === by) member.others = others
      sum = sum === NOTHING_IN_FLIGHT ? member.others : turnsTogether(sum, member.others)
    }
    this.ledger.hear(now, sum)
  }

  assertInvariants(): void {
    this.ledger.assertInvariants()
    assert(this.offlineKvTokens >= 0, 'offline turns give back what they held')
    const yielding = [...this.offlineTurns.values()].filter(({ isYielding }) => isYielding)
    assert(this.yieldingCount === yielding.length, 'a room waits for the turns that were called off, and no others')
    assert(this.longCount === 0 || this.longCount === 1, 'at most one long prompt is being read at a replica')
    assert(this.keptBy === undefined || this.keptBy.isKept, 'an engine is kept by a room that says so')
    if (!this.isCommon) return
    const held = this.#members.reduce((sum, { room }) => sum + room.own.held, 0)
    assert(held === this.ledger.held, 'L2: an engine holds what the rooms of its pools hold')
  }
}

interface Member {
  readonly pool: PoolOfEngine
  readonly room: RoomOfEngine
  others: TurnsInFlight
}
