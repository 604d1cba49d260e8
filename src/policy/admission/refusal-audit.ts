import type { Instant } from '../../base/clock.ts'

/**
 * Were we wrong to refuse?
 *
 * A refusal for lateness claims that the pool would not have had room in time. That can be checked: each such refusal
 * is remembered until the last instant at which its work could have begun, and whenever the pool has room that nobody
 * waiting wants, the oldest remembered refusal that would fit into it was a mistake, a *false reject*. The room that
 * it would have used is then taken as occupied for as long as it would have run, so that one idle hour does not
 * convict a thousand refusals. Those whose time runs out without such room were right.
 *
 * Memory is bounded by a ring; what is pushed out unjudged is counted as such, so the rate is over what was judged.
 * One per pool. It changes no decision: people and alerts read it, beside the coverage.
 *
 * Example: refused at 0 s, could have begun until 1.2 s, would have cost 800 of room for 2 s. At 0.9 s the pool has
 * 1,000 unused and nobody waiting: a false reject; until 2.9 s only 200 of that room convicts others.
 */
export const REFUSAL_AUDIT_DEFAULTS = {
  /** Refusals under watch: at a thousand refusals a second and patience of half a second, all of them. */
  watchedMax: 512,
}

export interface AuditedRefusal {
  readonly cost: number
  /** The last instant at which a turn would still have been in time. */
  readonly startBy: Instant
  /** How long it would have held its room. */
  readonly heldUs: number
  readonly promptTokens: number
}

export interface RefusalAuditView {
  readonly falseRejects: number
  readonly rightRejects: number
  readonly unjudged: number
  readonly watched: number
}

export class RefusalAudit {
  readonly #watchedMax: number
  #watched: AuditedRefusal[] = []
  /** The first instant at which some watched refusal runs out of time; before it there is nothing to expire. */
  #expiresAt = Number.POSITIVE_INFINITY
  /** Room that convicted refusals would be using. */
  #occupied: { readonly until: Instant; readonly cost: number }[] = []
  #falseRejects = 0
  #rightRejects = 0
  #unjudged = 0

  constructor(watchedMax = REFUSAL_AUDIT_DEFAULTS.watchedMax) {
    this.#watchedMax = watchedMax
  }

  refused(now: Instant, refusal: AuditedRefusal): void {
    this.#expire(now)
    if (this.#watched.length >= this.#watchedMax) {
      this.#watched.shift()
      this.#unjudged++
    }
    this.#watched.push(refusal)
    this.#expiresAt = Math.min(this.#expiresAt, refusal.startBy)
  }

  /**
   * The pool has this much room (weighted tokens that could begin now) and nobody placeable is waiting for it.
   * Returns the refusals that this proves wrong.
   */
  sawUnusedRoom(now: Instant, roomCost: number): readonly AuditedRefusal[] {
    this.#expire(now)
    if (this.#watched.length === 0) return []
    this.#occupied = this.#occupied.filter((held) => held.until > now)
    let room = roomCost
    for (const held of this.#occupied) room -= held.cost
    const wrong: AuditedRefusal[] = []
    this.#watched = this.#watched.filter((refusal) => {
      if (refusal.cost > room) return true
      room -= refusal.cost
      this.#occupied.push({ until: now + refusal.heldUs, cost: refusal.cost })
      wrong.push(refusal)
      return false
    })
    this.#falseRejects += wrong.length
    return wrong
  }

  view(now: Instant): RefusalAuditView {
    this.#expire(now)
    return {
      falseRejects: this.#falseRejects,
      rightRejects: this.#rightRejects,
      unjudged: this.#unjudged,
      watched: this.#watched.length,
    }
  }

  #expire(now: Instant): void {
    if (now <= this.#expiresAt) return
    const before = this.#watched.length
    this.#watched = this.#watched.filter((refusal) => refusal.startBy >= now)
    this.#rightRejects += before - this.#watched.length
    this.#expiresAt = Number.POSITIVE_INFINITY
    for (const refusal of this.#watched) this.#expiresAt = Math.min(this.#expiresAt, refusal.startBy)
  }
}
