import type { Clock } from '../base/clock.ts'
import type { Sharing } from '../lifecycle/sharing-ports.ts'
import { type Account, LeaseShard, type ShardAnswer } from '../policy/sharing/lease-shard.ts'
import { type RoomAnswer, type RoomAsk, RoomShard } from '../policy/sharing/room-grants.ts'
import type { Membership } from '../policy/sharing/shard-clock.ts'

/**
 * The lease store in the memory of one process: for gateways in that process, for those that ask it through a pipe, and
 * for the simulator. Buckets that nobody uses are forgotten; rooms have one shard.
 */
export class MemorySharing implements Sharing {
  readonly #clock: Clock
  #shards = new Map<number, LeaseShard>()
  #rooms = new RoomShard()
  #salt: string | undefined
  #callCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  take(shard: number, member: Membership, accounts: readonly Account[]): Promise<ShardAnswer | undefined> {
    const known = this.#shards.get(shard) ?? new LeaseShard()
    this.#shards.set(shard, known)
    const now = this.#clock.now()
    if (++this.#callCount % SWEEP_CALLS === 0) known.sweep(now)
    return Promise.resolve(known.take(now, member, accounts))
  }

  room(
    member: Membership,
    told: { readonly topic: string; readonly text: string },
    asks: readonly RoomAsk[],
  ): Promise<RoomAnswer | undefined> {
    return Promise.resolve(this.#rooms.ask(this.#clock.now(), member, told, asks))
  }

  salt(offered: string): Promise<string> {
    this.#salt ??= offered
    return Promise.resolve(this.#salt)
  }

  leave(gatewayId: string): Promise<void> {
    for (const shard of this.#shards.values()) shard.leave(gatewayId)
    this.#rooms.leave(gatewayId)
    return Promise.resolve()
  }

  /** Loses everything, as a store that was killed and came back empty. */
  wipe(): void {
    this.#shards = new Map()
    this.#rooms = new RoomShard()
    this.#salt = undefined
  }

  get bucketCount(): number {
    return [...this.#shards.values()].reduce((sum, { bucketCount }) => sum + bucketCount, 0)
  }
}

/** A shard is swept at every this many calls of any shard; a prime, so that every shard has its turn. */
const SWEEP_CALLS = 4_099
