import { assert } from '../../base/assert.ts'
import { SumTree } from '../../base/sum-tree.ts'

/**
 * Among siblings that share by weight, how much are the others served while one of them is served so much?
 *
 * One level of the fairness tree: members with a weight w and a backlog B, ordered by B ÷ w. While a member is served x
 * per unit of its weight, each other one is served min(B_j, w_j · x): those with B_j ÷ w_j ≤ x all of their backlog,
 * the rest x times their weight. Two sums over a tree, O(log n). A member without backlog is forgotten, so memory
 * follows those who wait. `backlog.ts` stacks levels; the formula and its example are there.
 */
export interface Member {
  readonly slot: number
  weight: number
  backlog: number
}

export class ShareLevel<M extends Member> {
  readonly #tree = new SumTree()
  readonly #members = new Map<string, M>()
  readonly #freeSlots: number[] = []
  readonly #makeMember: (slot: number) => M
  #slotCount = 0

  constructor(makeMember: (slot: number) => M) {
    this.#makeMember = makeMember
  }

  /** Weighted tokens that wait, over all members. */
  get backlog(): number {
    return this.#tree.total.first
  }

  get memberCount(): number {
    return this.#members.size
  }

  get(id: string): M | undefined {
    return this.#members.get(id)
  }

  getOrMake(id: string): M {
    let member = this.#members.get(id)
    if (member === undefined) {
      member = this.#makeMember(this.#freeSlots.pop() ?? this.#slotCount++)
      this.#members.set(id, member)
    }
    return member
  }

  change(id: string, by: { readonly cost: number; readonly weight: number }): M {
    const member = this.getOrMake(id)
    member.backlog += by.cost
    member.weight = by.weight
    assert(member.backlog >= 0, 'no more leaves a lane than joined it')
    assert(by.weight > 0, 'a weight is above zero')
    if (member.backlog > 0) {
      const key = member.backlog / member.weight
      this.#tree.set(member.slot, { key, first: member.backlog, second: member.weight })
    } else {
      this.#tree.remove(member.slot)
      this.#members.delete(id)
      this.#freeSlots.push(member.slot)
    }
    return member
  }

  /** What everybody but `id` is served while `id` is served x per unit of its weight. */
  servedToOthers(id: string, x: number): number {
    const upTo = this.#tree.sumUpTo(x)
    const all = upTo.first + x * (this.#tree.total.second - upTo.second)
    const member = this.#members.get(id)
    // `all` counts the member like the others; its own part is the caller's to add.
    return member === undefined ? all : all - Math.min(member.backlog, x * member.weight)
  }
}
