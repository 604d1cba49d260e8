import { type Sums, SumTree } from '../../base/sum-tree.ts'

/**
 * The sums of one level of shares (`share-level.ts`). Most tenants have one key, and most gateways one org: while there
 * has never been more than one member, its three amounts are the sums, and there is no tree. The numbers are the same,
 * bit for bit: a tree of one node sums its own amounts.
 */
const NOTHING: Sums = { first: 0, second: 0, third: 0 }

export class MemberSums {
  #tree: SumTree | undefined
  /** Slot 0 while there is no tree; a key of NaN: not there. */
  #key = Number.NaN
  #first = 0
  #second = 0
  #third = 0

  get firstTotal(): number {
    return this.#tree === undefined ? this.#first : this.#tree.firstTotal
  }

  get secondTotal(): number {
    return this.#tree === undefined ? this.#second : this.#tree.secondTotal
  }

  set(slot: number, key: number, first: number, second: number, third: number): void {
    if (this.#tree === undefined && slot === 0) {
      this.#key = key
      this.#first = first
      this.#second = second
      this.#third = third
      return
    }
    this.#tree ??= this.#plant()
    this.#tree.set(slot, key, { first, second, third })
  }

  remove(slot: number): void {
    if (this.#tree !== undefined) this.#tree.remove(slot)
    else if (slot === 0) this.#clear()
  }

  /** The amounts, summed over all members with key ≤ x. */
  sumUpTo(x: number): Sums {
    if (this.#tree !== undefined) return this.#tree.sumUpTo(x)
    return this.#key <= x ? { first: this.#first, second: this.#second, third: this.#third } : NOTHING
  }

  #plant(): SumTree {
    const tree = new SumTree()
    const amounts = { first: this.#first, second: this.#second, third: this.#third }
    if (!Number.isNaN(this.#key)) tree.set(0, this.#key, amounts)
    this.#clear()
    return tree
  }

  #clear(): void {
    this.#key = Number.NaN
    this.#first = 0
    this.#second = 0
    this.#third = 0
  }
}
