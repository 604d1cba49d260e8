import type { Asking } from '../policy/budgets/scope-budget.ts'
import type { Account, ShardAnswer } from '../policy/sharing/lease-shard.ts'
import type { RoomAnswer, RoomAsk } from '../policy/sharing/room-grants.ts'
import type { Membership } from '../policy/sharing/shard-clock.ts'

/**
 * Where do gateways that serve one fleet share its limits and its room? In the memory of a process that all of them ask,
 * or in Redis. A gateway that cannot reach the store lives on its safe share, so the store may be away at any time.
 *
 * Obligations: no call throws; each settles within seconds, undefined when there is no answer, and an answer that is late
 * is given all the same, because accounts are totals. A call may be lost, come late or be carried out twice.
 */
export interface Sharing {
  /** Hears this gateway on a shard, and answers its accounts; without accounts it is a beat. */
  take(shard: number, member: Membership, accounts: readonly Account[]): Promise<ShardAnswer | undefined>
  /** Grants slots of rooms, and passes on what gateways tell each other under a topic. */
  room(
    member: Membership,
    told: { readonly topic: string; readonly text: string },
    asks: readonly RoomAsk[],
  ): Promise<RoomAnswer | undefined>
  /**
   * The secret with which all gateways of the store name the beginnings of prompts: the first that was offered. Kept until
   * the store is emptied.
   */
  salt(offered: string): Promise<string | undefined>
  /** This gateway ends: nothing is held back for it any more. */
  leave(gatewayId: string): Promise<void>
}

/**
 * May a request that is larger than its slice have more of its budget? Carries what its budgets ask for to the lease
 * store, once.
 *
 * Obligations: it never throws, and takes 20 ms at most. True when an answer has come, and the budgets should be asked
 * again.
 */
export interface SliceFetcher {
  fetch(asking: readonly Asking[]): Promise<boolean>
}
