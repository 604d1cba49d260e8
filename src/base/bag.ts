import { assert } from './assert.ts'

/**
 * Things that come and go, in no order: an array in which each thing knows its place, and the last takes the place of
 * the one that leaves.
 *
 * Not a `Set`, where what is in it is the large short-lived state of a request. V8's sets and maps make a new table
 * every few dozen comings and goings, and each old table points to the next one; once an old table has been promoted to
 * the old generation, everything in all later ones is kept alive, and copied, until the next full collection. With
 * every live request in a `Map`, 0.9 of 2.3 MB promoted at each scavenge were requests that had long ended (--trace-gc).
 */
export interface BagItem {
  /** Set by the bag; −1 outside of it. */
  bagIndex: number
}

export class Bag<T extends BagItem> implements Iterable<T> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    assert(item.bagIndex < 0, 'a thing is in one bag, once')
    item.bagIndex = this.#items.length
    this.#items.push(item)
  }

  /** False when the item was not in the bag. */
  remove(item: T): boolean {
    const index = item.bagIndex
    if (index < 0 || this.#items[index] !== item) return false
    const last = this.#items.pop() as T
    if (last !== item) {
      this.#items[index] = last
      last.bagIndex = index
    }
    item.bagIndex = -1
    return true
  }

  /** The present items; the bag may change during the walk. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items][Symbol.iterator]()
  }
}
