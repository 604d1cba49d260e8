/**
 * A binary min-heap whose items know where they stand, so that one whose key changed, or that is no longer wanted, is
 * moved or taken out in O(log n) and leaves nothing dead behind.
 *
 *     keys:   [ 3 | 5 | 4 | 9 ]      read on the way up and down: one array of doubles, no item is touched
 *     items:  [ a | b | c | d ]      d.heapIndex = 3
 *
 * Smallest key first; among equal keys the smallest `sequence`. An item carries its place in `heapIndex` (−1 when it
 * is in no heap), so an item can be in one such heap at a time.
 */
export interface HeapItem {
  heapIndex: number
  readonly sequence: number
}

export class IndexedHeap<T extends HeapItem> {
  readonly #items: T[] = []
  readonly #keys: number[] = []

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  /** The smallest key; undefined when empty. */
  peekKey(): number | undefined {
    return this.#keys[0]
  }

  has(item: T): boolean {
    return item.heapIndex >= 0 && this.#items[item.heapIndex] === item
  }

  push(item: T, key: number): void {
    this.#items.push(item)
    this.#keys.push(key)
    this.#rise(item, key, this.#items.length - 1)
  }

  pop(): T | undefined {
    const top = this.#items[0]
    if (top !== undefined) this.remove(top)
    return top
  }

  remove(item: T): void {
    const at = item.heapIndex
    const last = this.#items.pop() as T
    const key = this.#keys.pop() as number
    item.heapIndex = -1
    if (last !== item) this.#settle(last, key, at)
  }

  /** The item has this key from here on, greater or smaller than before. */
  update(item: T, key: number): void {
    this.#settle(item, key, item.heapIndex)
  }

  *[Symbol.iterator](): Iterator<T> {
    yield* this.#items
  }

  #settle(item: T, key: number, at: number): void {
    if (at > 0 && this.#isBefore(key, item, (at - 1) >> 1)) this.#rise(item, key, at)
    else this.#sink(item, key, at)
  }

  /** Whether an item with this key goes before the one that stands at `at`. */
  #isBefore(key: number, item: T, at: number): boolean {
    const other = this.#keys[at] as number
    return key < other || (key === other && item.sequence < (this.#items[at] as T).sequence)
  }

  #rise(item: T, key: number, from: number): void {
    let i = from
    while (i > 0) {
      const up = (i - 1) >> 1
      if (!this.#isBefore(key, item, up)) break
      this.#move(up, i)
      i = up
    }
    this.#put(item, key, i)
  }

  #sink(item: T, key: number, from: number): void {
    const keys = this.#keys
    const count = keys.length
    let i = from
    for (;;) {
      let child = 2 * i + 1
      if (child >= count) break
      const right = child + 1
      if (right < count && this.#isBefore(keys[right] as number, this.#items[right] as T, child)) child = right
      const next = keys[child] as number
      if (key < next || (key === next && item.sequence < (this.#items[child] as T).sequence)) break
      this.#move(child, i)
      i = child
    }
    this.#put(item, key, i)
  }

  #move(from: number, to: number): void {
    const item = this.#items[from] as T
    this.#items[to] = item
    this.#keys[to] = this.#keys[from] as number
    item.heapIndex = to
  }

  #put(item: T, key: number, at: number): void {
    this.#items[at] = item
    this.#keys[at] = key
    item.heapIndex = at
  }
}
