/**
 * A binary min-heap whose items know where they stand, so that one whose key changed, or that is no longer wanted, is
 * moved or taken out in O(log n) and leaves nothing dead behind.
 *
 * An item carries its place in `heapIndex` (−1 when it is in no heap), so an item can be in one such heap at a time.
 * Equal keys are the business of `isBefore`: whoever needs a stable order puts a sequence number into it.
 */
export interface HeapItem {
  heapIndex: number
}

export class IndexedHeap<T extends HeapItem> {
  readonly #items: T[] = []
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  has(item: T): boolean {
    return item.heapIndex >= 0 && this.#items[item.heapIndex] === item
  }

  push(item: T): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  pop(): T | undefined {
    const top = this.#items[0]
    if (top !== undefined) this.remove(top)
    return top
  }

  remove(item: T): void {
    const at = item.heapIndex
    const last = this.#items.pop() as T
    item.heapIndex = -1
    if (last === item) return
    this.#settle(last, at)
  }

  /** Call it when the item's key has changed in either direction. */
  update(item: T): void {
    this.#settle(item, item.heapIndex)
  }

  *[Symbol.iterator](): Iterator<T> {
    yield* this.#items
  }

  #settle(item: T, at: number): void {
    const parent = this.#items[(at - 1) >> 1]
    if (at > 0 && parent !== undefined && this.#isBefore(item, parent)) this.#rise(item, at)
    else this.#sink(item, at)
  }

  #rise(item: T, from: number): void {
    const items = this.#items
    let i = from
    while (i > 0) {
      const up = (i - 1) >> 1
      const parent = items[up] as T
      if (!this.#isBefore(item, parent)) break
      items[i] = parent
      parent.heapIndex = i
      i = up
    }
    items[i] = item
    item.heapIndex = i
  }

  #sink(item: T, from: number): void {
    const items = this.#items
    const count = items.length
    let i = from
    for (;;) {
      let child = 2 * i + 1
      if (child >= count) break
      if (child + 1 < count && this.#isBefore(items[child + 1] as T, items[child] as T)) child++
      const next = items[child] as T
      if (!this.#isBefore(next, item)) break
      items[i] = next
      next.heapIndex = i
      i = child
    }
    items[i] = item
    item.heapIndex = i
  }
}
