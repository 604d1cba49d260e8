import { assert } from './assert.ts'

/**
 * Sums over everything whose key is at most x, while keys keep changing.
 *
 * A treap (Seidel and Aragon, 1996) in typed arrays: a binary search tree by (key, slot), kept balanced by a heap order
 * on pseudo-random ranks, where each node also holds the sums of three amounts over its subtree. Slots are the caller's
 * small integers; a slot's rank is a hash of its number, so the shape, and with it the order of adding, is the same in
 * every run.
 *
 *              (5 │ Σ 31)            sumUpTo(4): go left at 5, take 3 and what is left of it, go right …
 *             /          \
 *      (3 │ Σ 12)     (9 │ Σ 11)     set, remove, sum: O(log n); memory 72 bytes a slot
 *
 * A Fenwick tree does the same for keys that are known beforehand; ours are ratios that move with every ticket, so it
 * would need rebuilding or rounding, and adding and subtracting fractions in place drifts. Here each sum is formed
 * anew from its children: what was added and taken away again leaves no trace.
 */
const NIL = 0

/** A node is one cache line: its key, its three amounts, and their sums over its subtree. */
const STRIDE = 8
const KEY = 0
const FIRST = 1
const SECOND = 2
const THIRD = 3
const FIRST_SUM = 4
const SECOND_SUM = 5
const THIRD_SUM = 6

export interface Sums {
  readonly first: number
  readonly second: number
  readonly third: number
}

export class SumTree {
  // Node 0 is the empty tree, with sums of zero; slot s lives at node s + 1. A key of NaN: not in the tree.
  #nodes = new Float64Array(2 * STRIDE)
  /** Left and right child of each node. */
  #children = new Uint32Array(4)
  #root = NIL
  #count = 0
  // The two halves of a split: fields instead of a returned pair, because this is the hot path.
  #splitLow = NIL
  #splitHigh = NIL

  constructor() {
    this.#nodes[STRIDE + KEY] = Number.NaN
  }

  get size(): number {
    return this.#count
  }

  /** One of the totals alone: it is read for every request and needs no object. */
  get firstTotal(): number {
    return this.#nodes[this.#root * STRIDE + FIRST_SUM] as number
  }

  get secondTotal(): number {
    return this.#nodes[this.#root * STRIDE + SECOND_SUM] as number
  }

  get total(): Sums {
    const at = this.#root * STRIDE
    return {
      first: this.#nodes[at + FIRST_SUM] as number,
      second: this.#nodes[at + SECOND_SUM] as number,
      third: this.#nodes[at + THIRD_SUM] as number,
    }
  }

  /** Puts the slot at a key with its amounts, and moves the slot if it was elsewhere. */
  set(slot: number, key: number, amounts: Sums): void {
    assert(!Number.isNaN(key), 'a key can be ordered')
    const node = slot + 1
    this.#grow(node)
    if (this.#isHeld(node)) this.#root = this.#without(this.#root, node)
    else this.#count++
    const at = node * STRIDE
    this.#nodes[at + KEY] = key
    this.#nodes[at + FIRST] = amounts.first
    this.#nodes[at + SECOND] = amounts.second
    this.#nodes[at + THIRD] = amounts.third
    this.#setLeft(node, NIL)
    this.#setRight(node, NIL)
    this.#sum(node)
    this.#root = this.#with(this.#root, node)
  }

  remove(slot: number): void {
    const node = slot + 1
    if (!this.#isHeld(node)) return
    this.#root = this.#without(this.#root, node)
    this.#nodes[node * STRIDE + KEY] = Number.NaN
    this.#count--
  }

  /** The amounts, summed over all slots with key ≤ x. */
  sumUpTo(x: number): Sums {
    const nodes = this.#nodes
    let node = this.#root
    let first = 0
    let second = 0
    let third = 0
    while (node !== NIL) {
      const at = node * STRIDE
      if ((nodes[at + KEY] as number) <= x) {
        const left = this.#left(node) * STRIDE
        first += (nodes[left + FIRST_SUM] as number) + (nodes[at + FIRST] as number)
        second += (nodes[left + SECOND_SUM] as number) + (nodes[at + SECOND] as number)
        third += (nodes[left + THIRD_SUM] as number) + (nodes[at + THIRD] as number)
        node = this.#right(node)
      } else {
        node = this.#left(node)
      }
    }
    return { first, second, third }
  }

  assertInvariants(): void {
    let count = 0
    const visit = (node: number, low: number, high: number): void => {
      if (node === NIL) return
      count++
      const key = this.#nodes[node * STRIDE + KEY] as number
      assert(key >= low && key <= high, 'keys are in order')
      for (const child of [this.#left(node), this.#right(node)]) {
        assert(child === NIL || rankOf(child) <= rankOf(node), 'ranks fall towards the leaves')
      }
      visit(this.#left(node), low, key)
      visit(this.#right(node), key, high)
    }
    visit(this.#root, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
    assert(count === this.#count, 'every held slot is in the tree once')
  }

  #with(tree: number, node: number): number {
    if (tree === NIL) return node
    if (rankOf(node) > rankOf(tree)) {
      this.#split(tree, node)
      this.#setLeft(node, this.#splitLow)
      this.#setRight(node, this.#splitHigh)
      this.#sum(node)
      return node
    }
    if (this.#isBefore(node, tree)) this.#setLeft(tree, this.#with(this.#left(tree), node))
    else this.#setRight(tree, this.#with(this.#right(tree), node))
    this.#sum(tree)
    return tree
  }

  #without(tree: number, node: number): number {
    assert(tree !== NIL, 'a held slot is found where its key says')
    if (tree === node) return this.#join(this.#left(node), this.#right(node))
    if (this.#isBefore(node, tree)) this.#setLeft(tree, this.#without(this.#left(tree), node))
    else this.#setRight(tree, this.#without(this.#right(tree), node))
    this.#sum(tree)
    return tree
  }

  /** Splits a tree into what is before the node and what is after it. */
  #split(tree: number, node: number): void {
    if (tree === NIL) {
      this.#splitLow = NIL
      this.#splitHigh = NIL
      return
    }
    if (this.#isBefore(tree, node)) {
      this.#split(this.#right(tree), node)
      this.#setRight(tree, this.#splitLow)
      this.#splitLow = tree
    } else {
      this.#split(this.#left(tree), node)
      this.#setLeft(tree, this.#splitHigh)
      this.#splitHigh = tree
    }
    this.#sum(tree)
  }

  #join(low: number, high: number): number {
    if (low === NIL) return high
    if (high === NIL) return low
    if (rankOf(low) > rankOf(high)) {
      this.#setRight(low, this.#join(this.#right(low), high))
      this.#sum(low)
      return low
    }
    this.#setLeft(high, this.#join(low, this.#left(high)))
    this.#sum(high)
    return high
  }

  #isBefore(a: number, b: number): boolean {
    const keyA = this.#nodes[a * STRIDE + KEY] as number
    const keyB = this.#nodes[b * STRIDE + KEY] as number
    return keyA < keyB || (keyA === keyB && a < b)
  }

  #sum(node: number): void {
    const nodes = this.#nodes
    const at = node * STRIDE
    const left = this.#left(node) * STRIDE
    const right = this.#right(node) * STRIDE
    for (let amount = FIRST; amount <= THIRD; amount++) {
      const sum = amount + FIRST_SUM - FIRST
      nodes[at + sum] = (nodes[left + sum] as number) + (nodes[right + sum] as number) + (nodes[at + amount] as number)
    }
  }

  #isHeld(node: number): boolean {
    const key = this.#nodes[node * STRIDE + KEY]
    return key !== undefined && !Number.isNaN(key)
  }

  #left(node: number): number {
    return this.#children[2 * node] as number
  }

  #right(node: number): number {
    return this.#children[2 * node + 1] as number
  }

  #setLeft(node: number, child: number): void {
    this.#children[2 * node] = child
  }

  #setRight(node: number, child: number): void {
    this.#children[2 * node + 1] = child
  }

  #grow(node: number): void {
    const have = this.#children.length / 2
    if (node < have) return
    const size = Math.max(node + 1, have * 2)
    const nodes = new Float64Array(size * STRIDE)
    nodes.set(this.#nodes)
    for (let added = have; added < size; added++) nodes[added * STRIDE + KEY] = Number.NaN
    this.#nodes = nodes
    const children = new Uint32Array(size * 2)
    children.set(this.#children)
    this.#children = children
  }
}

/** A fixed hash (the finaliser of MurmurHash3) as the heap order: as good as random, and the same in every run. */
function rankOf(node: number): number {
  let hash = Math.imul(node ^ (node >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
