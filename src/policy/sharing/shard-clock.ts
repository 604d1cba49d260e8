import type { Instant } from '../../base/clock.ts'

/**
 * Which gateways share this shard, and how much time may its budgets refill for?
 *
 * A shard's clock is its *heard time*: it runs at the pace of the gateways that are heard. While nobody is heard it
 * stands still, and while some are silent it leaves out their part, because a silent gateway lives on its *safe share*,
 * 1/N of each limit. Both sides of a cut agree on that share without talking. The idea is Doorman's safe capacity
 * (youtube/doorman, doc/design.md); heard time, the epoch and the floor are ours.
 *
 *     heard += min(dt, ttl) · live ÷ n        dt ≥ 0: a clock that was set back costs refill and gives none
 *
 * The *roster* has every gateway that was heard within `forgetUs`. The *epoch* is one life of the store: a gateway that
 * brings another epoch knew the store before it was emptied. Then, and after the store was deaf, `told` (the N that the
 * gateway last heard) is a *floor*: gateways that are not back yet still live on 1/told.
 *
 * The functions in Redis (`sharing/lease-functions.ts`) do the same, number for number; a differential test compares the
 * two. Instants are microseconds.
 *
 * Example: 4 gateways, one silent for 3 s, ttl 1 s. In one second of the others the clock advances 0.75 s; the silent
 * gateway spends the other quarter.
 */
export interface Membership {
  /** The gateway's name, new with each start. */
  readonly id: string
  /** Epoch of the last answer; empty before the first. */
  readonly epoch: string
  /** Number of gateways in the last answer; 0 before the first. */
  readonly told: number
  /** A gateway that was not heard for this long is silent. */
  readonly ttlMs: number
  /** A gateway that was silent for this long is forgotten. */
  readonly forgetMs: number
}

export interface ShardReading {
  readonly epoch: string
  /** Heard time, in microseconds. */
  readonly heardUs: number
  readonly gatewayCount: number
  readonly liveCount: number
  readonly isEmptied: boolean
  /** Since this gateway was heard before; −1 when the roster did not know it. */
  readonly gapUs: number
}

export class ShardClock {
  readonly #roster = new Map<string, Instant>()
  #epoch: string | undefined
  #heardUs = 0
  #at: Instant = 0
  #floor = 0
  #floorUntil: Instant = 0
  #isEmptied = false

  /** Hears one gateway, and moves the clock. */
  advance(now: Instant, member: Membership): ShardReading {
    const ttlUs = member.ttlMs * 1_000
    const forgetUs = member.forgetMs * 1_000
    const epoch = this.#epoch ?? String(now)
    const dt = this.#epoch === undefined ? 0 : Math.max(0, now - this.#at)
    const gapUs = this.#hear(now, member.id, forgetUs)
    this.#isEmptied ||= member.told > 0 && member.epoch !== epoch
    this.#raiseFloor(now, member, { isDeaf: dt > ttlUs, isYoung: now < Number(epoch) + forgetUs })
    const gatewayCount = Math.max(this.#roster.size, this.#floor)
    let liveCount = 0
    for (const heardAt of this.#roster.values()) if (heardAt > now - ttlUs) liveCount++
    this.#heardUs += Math.floor((Math.min(dt, ttlUs) * liveCount) / gatewayCount)
    this.#epoch = epoch
    this.#at = now
    return { epoch, heardUs: this.#heardUs, gatewayCount, liveCount, isEmptied: this.#isEmptied, gapUs }
  }

  leave(id: string): boolean {
    return this.#roster.delete(id)
  }

  knows(id: string): boolean {
    return this.#roster.has(id)
  }

  get rosterSize(): number {
    return this.#roster.size
  }

  #hear(now: Instant, id: string, forgetUs: number): number {
    // The clock was set back: a gateway that was heard in the future was heard now.
    for (const [name, heardAt] of this.#roster) if (heardAt > now) this.#roster.set(name, now)
    const heardAt = this.#roster.get(id)
    this.#roster.set(id, now)
    for (const [name, at] of this.#roster) if (at <= now - forgetUs) this.#roster.delete(name)
    return heardAt === undefined ? -1 : now - heardAt
  }

  /** Empty, or deaf for a while: no fewer gateways than those that are back were told. */
  #raiseFloor(now: Instant, member: Membership, { isDeaf, isYoung }: { isDeaf: boolean; isYoung: boolean }): void {
    if (now >= this.#floorUntil) this.#floor = 0
    if (member.told <= this.#floor) return
    if (this.#floor === 0 && !isDeaf && !(this.#isEmptied && isYoung)) return
    if (this.#floor === 0) this.#floorUntil = now + member.forgetMs * 1_000
    this.#floor = member.told
  }
}
