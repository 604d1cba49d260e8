import { assert } from './assert.ts'

/**
 * Which of these was used least recently? A list through the items themselves, oldest first: a use moves an item to the
 * end in O(1) and makes no garbage, where deleting from a Map and setting again copies its table every so often.
 *
 *     oldest ⇄ … ⇄ … ⇄ newest
 */
export interface RecencyItem {
  older: RecencyItem | undefined
  newer: RecencyItem | undefined
}

export class Recency<T extends RecencyItem> {
  #oldest: T | undefined
  #newest: T | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  /** A new item, which is in no list. */
  add(item: T): void {
    assert(item.older === undefined && item.newer === undefined && item !== this.#newest, 'an item is added once')
    item.older = this.#newest
    if (this.#newest === undefined) this.#oldest = item
    else this.#newest.newer = item
    this.#newest = item
    this.#size++
  }

  /** The item was used just now. */
  touch(item: T): void {
    if (item === this.#newest) return
    this.#unlink(item)
    this.add(item)
  }

  /** Takes the item that was used least recently. */
  takeOldest(): T | undefined {
    const oldest = this.#oldest
    if (oldest !== undefined) this.#unlink(oldest)
    return oldest
  }

  #unlink(item: T): void {
    const { older, newer } = item
    if (older === undefined) this.#oldest = newer as T | undefined
    else older.newer = newer
    if (newer === undefined) this.#newest = older as T | undefined
    else newer.older = older
    item.older = undefined
    item.newer = undefined
    this.#size--
  }
}
