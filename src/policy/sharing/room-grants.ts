import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { type Membership, ShardClock, type ShardReading } from './shard-clock.ts'

/**
 * How many of these slots may this gateway use? The store's side of shared room: slots at a replica, or requests at once
 * of a tenant (permits).
 *
 * A gateway says how many slots it would like (`target`, from `room-targets.ts`) and how many it holds. It is granted
 *
 *     min(target, L − Σ over the others of max(held, granted))
 *
 * so shrinking works at once and growing only into what others have let go: the sum of what may be in flight is never
 * over L (law L2), whatever the targets are. A gateway lowers its own allowance to its target *before* it asks, so a lost
 * answer cannot leave two gateways with one slot. A call that comes after a later one is answered −1 and changes nothing.
 *
 * With the same call gateways tell each other what waits at them: one text each, which the store does not read.
 *
 * After the store was emptied it does not know what others hold: for `ttl` nobody grows, and 1/told of the slots is kept
 * for each gateway that is not back. A silent gateway lowers itself to L ÷ N. Deliberately not: the slots of a silent
 * gateway are not given away before it is forgotten or has left, because its requests may still run.
 *
 * Twin of the function `room` in `sharing/lease-functions.ts`. Bound: records and reports of gateways that are not in the
 * roster are dropped at every call.
 *
 * Example: L = 64, A is granted 64. B asks for 32 and gets 0; A, which now has half of the backlog, asks for 32 with 40
 * in flight, so B gets 24; when A's 40 have become 32, B gets 32.
 */
export interface RoomAsk {
  readonly name: string
  readonly limit: number
  readonly held: number
  /** What the gateway may use at present, as far as it knows. */
  readonly granted: number
  readonly target: number
  /** Grows with every call of this gateway: an instant will do. */
  readonly sequence: number
}

export interface RoomAnswer {
  readonly gatewayCount: number
  readonly silentCount: number
  readonly epoch: string
  /** One for each ask; −1 for a call that came after a later one. */
  readonly granted: readonly number[]
  /** What the other live gateways last told, by gateway. */
  readonly reports: ReadonlyMap<string, string>
}

interface RoomHolding {
  held: number
  granted: number
  sequence: number
}

export class RoomShard {
  readonly #clock = new ShardClock()
  readonly #rooms = new Map<string, Map<string, RoomHolding>>()
  readonly #reports = new Map<string, Map<string, { readonly text: string; readonly at: Instant }>>()

  /** `topic` names those who tell each other: a pool. */
  ask(
    now: Instant,
    member: Membership,
    told: { readonly topic: string; readonly text: string },
    asks: readonly RoomAsk[],
  ): RoomAnswer {
    const reading = this.#clock.advance(now, member)
    return {
      gatewayCount: reading.gatewayCount,
      silentCount: reading.gatewayCount - reading.liveCount,
      epoch: reading.epoch,
      granted: asks.map((ask) => this.#grant(now, member, ask, reading)),
      reports: this.#exchange(now, member, told),
    }
  }

  leave(id: string): boolean {
    return this.#clock.leave(id)
  }

  #grant(now: Instant, member: Membership, ask: RoomAsk, reading: ShardReading): number {
    const { limit, held, target, sequence } = ask
    const room = this.#rooms.get(ask.name) ?? new Map<string, RoomHolding>()
    this.#rooms.set(ask.name, room)
    let others = 0
    for (const [id, holding] of room) {
      if (!this.#clock.knows(id)) room.delete(id)
      else if (id !== member.id) others += Math.max(holding.held, holding.granted)
    }
    const own = room.get(member.id)
    if (own !== undefined && sequence < own.sequence) return -1
    const unknown = Math.max(0, reading.gatewayCount - this.#clock.rosterSize)
    const free = Math.max(0, limit - others - unknown * Math.ceil(limit / reading.gatewayCount))
    const isYoung = reading.isEmptied && now < Number(reading.epoch) + member.ttlMs * 1_000
    const granted = Math.min(target, free, isYoung ? Math.max(ask.granted, held) : target)
    assert(granted >= 0, 'a grant is not negative')
    room.set(member.id, { held, granted, sequence })
    return granted
  }

  #exchange(now: Instant, member: Membership, { topic, text }: { topic: string; text: string }): Map<string, string> {
    const told = this.#reports.get(topic) ?? new Map<string, { text: string; at: Instant }>()
    this.#reports.set(topic, told)
    const others = new Map<string, string>()
    for (const [id, report] of told) {
      if (!this.#clock.knows(id)) told.delete(id)
      else if (id !== member.id && report.at > now - member.ttlMs * 1_000) others.set(id, report.text)
    }
    told.set(member.id, { text, at: now })
    return others
  }
}
