/**
 * A binary min-heap ordered by a strict `isBefore`.
 *
 *        0          parent of i: (i − 1) >> 1
 *      1   2        children:    2i + 1, 2i + 2
 *     3 4 5 6
 *
 * It does not know about equal keys: whoever needs a stable order puts a sequence number into `isBefore`.
 */
export class Heap<T> {
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

  push(item: T): void {
    const items = this.#items
    let i = items.length
    items.push(item)
    while (i > 0) {
      const up = (i - 1) >> 1
      const parent = items[up] as T
      if (!this.#isBefore(item, parent)) break
      items[i] = parent
      i = up
    }
    items[i] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const top = items[0]
    const last = items.pop()
    if (items.length > 0 && last !== undefined) {
      items[0] = last
      this.#sink(0)
    }
    return top
  }

  /** Keeps only the items that pass, in O(n). For lazy deletion: call it when most of the heap is dead. */
  retain(isKept: (item: T) => boolean): void {
    const items = this.#items
    let kept = 0
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as T
      if (isKept(item)) items[kept++] = item
    }
    items.length = kept
    for (let i = (kept >> 1) - 1; i >= 0; i--) this.#sink(i)
  }

  #sink(from: number): void {
    const items = this.#items
    const item = items[from] as T
    const count = items.length
    let i = from
    for (;;) {
      let child = 2 * i + 1
      if (child >= count) break
      if (child + 1 < count && this.#isBefore(items[child + 1] as T, items[child] as T)) child++
      const next = items[child] as T
      if (!this.#isBefore(next, item)) break
      items[i] = next
      i = child
    }
    items[i] = item
  }
}
