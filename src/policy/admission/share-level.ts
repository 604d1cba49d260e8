import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { FadingScale } from './fading-scale.ts'
import { MemberSums } from './member-sums.ts'

/**
 * Among siblings that share by weight, how much are the others served while one of them is served so much?
 *
 * One level of the fairness tree: members with a weight w and a backlog B, ordered by B ÷ w. While a member is served x
 * per unit of its weight, each other one is served min(B_j, w_j · x): those with B_j ÷ w_j ≤ x all of their backlog,
 * the rest x times their weight. Those who run out of backlog before will not all stay away: each member's flow (the
 * cost that went through its lane lately; what still waits is counted as backlog) is summed in the same order, so that
 * it is known how fast new work of the light ones comes in between, and how much of it may be served before they too
 * have had their share.
 *
 * All are sums over one tree, O(log n). A member stays while it has backlog or had some lately; a hand looks at two of
 * the others for each one that joins and forgets who has neither. `backlog.ts` stacks levels; the formula and its
 * example are there.
 */
export const SHARE_LEVEL_DEFAULTS = {
  /** A member without backlog since so long is forgotten: its flow has faded to an eighth. */
  forgetAfterUs: 30_000_000,
  /** Members looked at for each one that joins: two, so that the hand outruns newcomers. */
  sweepCount: 2,
}

export interface Member {
  readonly slot: number
  weight: number
  backlog: number
  /** Cost that went through its lane, in the level's fading scale. */
  flow: number
  /** When it last joined or had a turn. */
  flowedAt: Instant
}

/** What the others are served meanwhile: of what waits now, and of what may still come. */
export interface Others {
  readonly waiting: number
  /** New work of those who run out, per microsecond of waiting … */
  readonly inflowPerUs: number
  /** … and in all at most. */
  readonly inflowMax: number
}

export const NO_OTHERS: Others = { waiting: 0, inflowPerUs: 0, inflowMax: 0 }

export class ShareLevel<M extends Member> {
  readonly #sums = new MemberSums()
  readonly #members = new Map<string, M>()
  readonly #freeSlots: number[] = []
  readonly #makeMember: (slot: number) => M
  readonly #scale = new FadingScale()
  #hand: MapIterator<[string, M]> = this.#members.entries()
  #slotCount = 0
  #activeCount = 0
  #activeWeight = 0

  constructor(makeMember: (slot: number) => M) {
    this.#makeMember = makeMember
  }

  /** Weighted tokens that wait, over all members. */
  get backlog(): number {
    return this.#sums.firstTotal
  }

  get memberCount(): number {
    return this.#members.size
  }

  /** The weights of all members with backlog. */
  get activeWeight(): number {
    return this.#activeWeight
  }

  get(id: string): M | undefined {
    return this.#members.get(id)
  }

  /** Whoever is asked for counts as seen now, new or not: the hand must not forget it before its ticket has joined. */
  getOrMake(now: Instant, id: string): M {
    let member = this.#members.get(id)
    if (member === undefined) {
      member = this.#makeMember(this.#freeSlots.pop() ?? this.#slotCount++)
      this.#members.set(id, member)
    }
    member.flowedAt = now
    return member
  }

  join(now: Instant, id: string, ticket: { readonly cost: number; readonly weight: number }): void {
    assert(ticket.weight > 0, 'a weight is above zero')
    const member = this.getOrMake(now, id)
    if (member.backlog === 0) this.#activeCount++
    this.#activeWeight += member.backlog === 0 ? ticket.weight : ticket.weight - member.weight
    member.backlog += ticket.cost
    member.weight = ticket.weight
    member.flowedAt = now
    this.#put(member)
    // Where all have something waiting there is nobody to forget.
    if (this.#members.size > this.#activeCount) this.#sweep(now)
  }

  /** A ticket left its lane; when it got its turn, `grantedAt` says when, and it counts as flow. */
  leave(id: string, cost: number, grantedAt: Instant | undefined): void {
    const member = this.#members.get(id)
    assert(member !== undefined && member.backlog >= cost, 'no more leaves a lane than joined it')
    member.backlog -= cost
    if (member.backlog === 0) this.#deactivate(member.weight)
    if (grantedAt !== undefined) {
      this.#refresh(grantedAt)
      member.flow += cost * this.#scale.now
      member.flowedAt = grantedAt
    }
    this.#put(member)
  }

  reweigh(id: string, weight: number): void {
    const member = this.#members.get(id)
    if (member === undefined || member.weight === weight) return
    if (member.backlog > 0) this.#activeWeight += weight - member.weight
    member.weight = weight
    this.#put(member)
  }

  /** What everybody but `id` is served while `id` is served x per unit of its weight, the last ticket's part apart. */
  servedToOthers(now: Instant, id: string, served: { readonly x: number; readonly xBefore: number }): Others {
    if (this.#members.size === 0) return NO_OTHERS
    this.#refresh(now)
    const { x, xBefore } = served
    const upTo = this.#sums.sumUpTo(x)
    const light = this.#sums.sumUpTo(xBefore)
    let waiting = upTo.first + x * (this.#sums.secondTotal - upTo.second)
    let flow = light.third
    let inflowMax = xBefore * light.second - light.first
    // The sums count the member like the others; its own part is the caller's to add.
    const member = this.#members.get(id)
    if (member !== undefined) {
      waiting -= Math.min(member.backlog, x * member.weight)
      if (member.backlog <= xBefore * member.weight) {
        flow -= member.flow
        inflowMax -= xBefore * member.weight - member.backlog
      }
    }
    return {
      waiting: Math.max(0, waiting),
      inflowPerUs: Math.max(0, flow * this.#scale.perUs(now)),
      inflowMax: Math.max(0, inflowMax),
    }
  }

  #deactivate(weight: number): void {
    this.#activeCount--
    // Starting over at zero, fractions that were added and taken away leave no trace for long.
    this.#activeWeight = this.#activeCount === 0 ? 0 : this.#activeWeight - weight
  }

  #put(member: M): void {
    const { backlog, weight, flow } = member
    this.#sums.set(member.slot, backlog / weight, backlog, weight, flow)
  }

  /** Now and then the scale starts over, and all that is kept in it is brought down with it. */
  #refresh(now: Instant): void {
    const factor = this.#scale.advance(now)
    if (factor === undefined) return
    for (const member of this.#members.values()) {
      member.flow *= factor
      this.#put(member)
    }
  }

  #sweep(now: Instant): void {
    for (let i = 0; i < SHARE_LEVEL_DEFAULTS.sweepCount; i++) {
      const next = this.#hand.next()
      if (next.done === true) {
        this.#hand = this.#members.entries()
        return
      }
      const [id, member] = next.value
      if (member.backlog > 0 || now - member.flowedAt < SHARE_LEVEL_DEFAULTS.forgetAfterUs) continue
      this.#sums.remove(member.slot)
      this.#members.delete(id)
      this.#freeSlots.push(member.slot)
    }
  }
}
