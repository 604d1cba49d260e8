/**
 * Was a model pool full while it refused? Each refusal is remembered until the last instant at which its work could have
 * begun; when the pool has room that nobody wants, the oldest refusals that fit into it together were wrong, and occupy
 * it for as long as they would have run. What the real pools' audit asks is whether one more would have been in time
 * (`policy/admission/refusal-audit.ts`); this asks how much work was turned away beside unused room.
 */
export interface RefusedWork {
  readonly cost: number
  /** The last instant at which a turn would still have been in time. */
  readonly startBy: number
  /** How long it would have held its room. */
  readonly heldUs: number
}

export interface UnusedRoomView {
  readonly falseRejects: number
  readonly rightRejects: number
  readonly unjudged: number
  readonly watched: number
}

export class UnusedRoom {
  readonly #watchedMax: number
  #watched: RefusedWork[] = []
  /** The first instant at which some watched refusal runs out of time; before it there is nothing to expire. */
  #expiresAt = Number.POSITIVE_INFINITY
  /** Room that convicted refusals would be using. */
  #occupied: { readonly until: number; readonly cost: number }[] = []
  #falseRejects = 0
  #rightRejects = 0
  #unjudged = 0

  constructor(watchedMax = 512) {
    this.#watchedMax = watchedMax
  }

  refused(now: number, refusal: RefusedWork): void {
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
  sawUnusedRoom(now: number, roomCost: number): readonly RefusedWork[] {
    this.#expire(now)
    if (this.#watched.length === 0) return []
    this.#occupied = this.#occupied.filter((held) => held.until > now)
    let room = roomCost
    for (const held of this.#occupied) room -= held.cost
    const wrong: RefusedWork[] = []
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

  view(now: number): UnusedRoomView {
    this.#expire(now)
    return {
      falseRejects: this.#falseRejects,
      rightRejects: this.#rightRejects,
      unjudged: this.#unjudged,
      watched: this.#watched.length,
    }
  }

  #expire(now: number): void {
    if (now <= this.#expiresAt) return
    const before = this.#watched.length
    this.#watched = this.#watched.filter((refusal) => refusal.startBy >= now)
    this.#rightRejects += before - this.#watched.length
    this.#expiresAt = Number.POSITIVE_INFINITY
    for (const refusal of this.#watched) this.#expiresAt = Math.min(this.#expiresAt, refusal.startBy)
  }
}
