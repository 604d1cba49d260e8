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
 *      (3 │ Σ 12)     (9 │ Σ 11)     set, remove, sum: O(log n); memory 65 bytes a slot
 *
 * A Fenwick tree does the same for keys that are known beforehand; ours are ratios that move with every ticket, so it
 * would need rebuilding or rounding, and adding and subtracting fractions in place drifts. Here each sum is formed
 * anew from its children: what was added and taken away again leaves no trace.
 */
const NIL = 0

export interface Sums {
  readonly first: number
  readonly second: number
  readonly third: number
}

export class SumTree {
  // Index 0 is the empty tree; slot s lives at index s + 1.
  #left = new Uint32Array(16)
  #right = new Uint32Array(16)
  #key = new Float64Array(16)
  #first = new Float64Array(16)
  #second = new Float64Array(16)
  #third = new Float64Array(16)
  #firstSum = new Float64Array(16)
  #secondSum = new Float64Array(16)
  #thirdSum = new Float64Array(16)
  #isHeld = new Uint8Array(16)
  #root = NIL
  #count = 0
  // Where the two halves of a split ended up: a field instead of a returned pair, because it is the hot path.
  #splitLow = NIL
  #splitHigh = NIL

  get size(): number {
    return this.#count
  }

  get total(): Sums {
    return {
      first: this.#firstSum[this.#root] as number,
      second: this.#secondSum[this.#root] as number,
      third: this.#thirdSum[this.#root] as number,
    }
  }

  /** Puts the slot at a key with its amounts, moving it if it was elsewhere. */
  set(slot: number, key: number, amounts: Sums): void {
    assert(!Number.isNaN(key), 'a key can be ordered')
    const node = slot + 1
    this.#grow(node)
    if (this.#isHeld[node] === 1) this.#root = this.#without(this.#root, node)
    else this.#count++
    this.#isHeld[node] = 1
    this.#key[node] = key
    this.#first[node] = amounts.first
    this.#second[node] = amounts.second
    this.#third[node] = amounts.third
    this.#left[node] = NIL
    this.#right[node] = NIL
    this.#sum(node)
    this.#root = this.#with(this.#root, node)
  }

  remove(slot: number): void {
    const node = slot + 1
    if (this.#isHeld[node] !== 1) return
    this.#root = this.#without(this.#root, node)
    this.#isHeld[node] = 0
    this.#count--
  }

  /** The amounts, summed over all slots with key ≤ x. */
  sumUpTo(x: number): Sums {
    let node = this.#root
    let first = 0
    let second = 0
    let third = 0
    while (node !== NIL) {
      if ((this.#key[node] as number) <= x) {
        const left = this.#left[node] as number
        first += (this.#firstSum[left] as number) + (this.#first[node] as number)
        second += (this.#secondSum[left] as number) + (this.#second[node] as number)
        third += (this.#thirdSum[left] as number) + (this.#third[node] as number)
        node = this.#right[node] as number
      } else {
        node = this.#left[node] as number
      }
    }
    return { first, second, third }
  }

  assertInvariants(): void {
    let count = 0
    const visit = (node: number, low: number, high: number): void => {
      if (node === NIL) return
      count++
      const key = this.#key[node] as number
      assert(key >= low && key <= high, 'keys are in order')
      for (const child of [this.#left[node] as number, this.#right[node] as number]) {
        assert(child === NIL || rankOf(child) <= rankOf(node), 'ranks fall towards the leaves')
      }
      visit(this.#left[node] as number, low, key)
      visit(this.#right[node] as number, key, high)
    }
    visit(this.#root, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
    assert(count === this.#count, 'every held slot is in the tree once')
  }

  #with(tree: number, node: number): number {
    if (tree === NIL) return node
    if (rankOf(node) > rankOf(tree)) {
      this.#split(tree, node)
      this.#left[node] = this.#splitLow
      this.#right[node] = this.#splitHigh
      this.#sum(node)
      return node
    }
    if (this.#isBefore(node, tree)) this.#left[tree] = this.#with(this.#left[tree] as number, node)
    else this.#right[tree] = this.#with(this.#right[tree] as number, node)
    this.#sum(tree)
    return tree
  }

  #without(tree: number, node: number): number {
    assert(tree !== NIL, 'a held slot is found where its key says')
    if (tree === node) return this.#join(this.#left[node] as number, this.#right[node] as number)
    if (this.#isBefore(node, tree)) this.#left[tree] = this.#without(this.#left[tree] as number, node)
    else this.#right[tree] = this.#without(this.#right[tree] as number, node)
    this.#sum(tree)
    return tree
  }

  /** Cuts a tree into what is before the node and what is after it. */
  #split(tree: number, node: number): void {
    if (tree === NIL) {
      this.#splitLow = NIL
      this.#splitHigh = NIL
      return
    }
    if (this.#isBefore(tree, node)) {
      this.#split(this.#right[tree] as number, node)
      this.#right[tree] = this.#splitLow
      this.#splitLow = tree
    } else {
      this.#split(this.#left[tree] as number, node)
      this.#left[tree] = this.#splitHigh
      this.#splitHigh = tree
    }
    this.#sum(tree)
  }

  #join(low: number, high: number): number {
    if (low === NIL) return high
    if (high === NIL) return low
    if (rankOf(low) > rankOf(high)) {
      this.#right[low] = this.#join(this.#right[low] as number, high)
      this.#sum(low)
      return low
    }
    this.#left[high] = this.#join(low, this.#left[high] as number)
    this.#sum(high)
    return high
  }

  #isBefore(a: number, b: number): boolean {
    const keyA = this.#key[a] as number
    const keyB = this.#key[b] as number
    return keyA < keyB || (keyA === keyB && a < b)
  }

  #sum(node: number): void {
    const left = this.#left[node] as number
    const right = this.#right[node] as number
    this.#firstSum[node] = sumOf(this.#firstSum, left, right) + (this.#first[node] as number)
    this.#secondSum[node] = sumOf(this.#secondSum, left, right) + (this.#second[node] as number)
    this.#thirdSum[node] = sumOf(this.#thirdSum, left, right) + (this.#third[node] as number)
  }

  #grow(node: number): void {
    const have = this.#key.length
    if (node < have) return
    const size = Math.max(node + 1, have * 2)
    this.#left = enlarged(this.#left, new Uint32Array(size))
    this.#right = enlarged(this.#right, new Uint32Array(size))
    this.#key = enlarged(this.#key, new Float64Array(size))
    this.#first = enlarged(this.#first, new Float64Array(size))
    this.#second = enlarged(this.#second, new Float64Array(size))
    this.#third = enlarged(this.#third, new Float64Array(size))
    this.#firstSum = enlarged(this.#firstSum, new Float64Array(size))
    this.#secondSum = enlarged(this.#secondSum, new Float64Array(size))
    this.#thirdSum = enlarged(this.#thirdSum, new Float64Array(size))
    this.#isHeld = enlarged(this.#isHeld, new Uint8Array(size))
  }
}

function sumOf(sums: Float64Array, left: number, right: number): number {
  return (sums[left] as number) + (sums[right] as number)
}

function enlarged<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from)
  return to
}

/** A fixed hash (the finaliser of MurmurHash3) as the heap order: as good as random, and the same in every run. */
function rankOf(node: number): number {
  let hash = Math.imul(node ^ (node >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
