/**
 * A heap with two ends: the first and the last item are both at hand in O(1), and either is taken in O(log n). It is
 * van Leeuwen and Wood's interval heap, laid out in one array as pairs (low, high):
 *
 *     pair 0: [0 1]           low  = items[2p]      ≤ every item below it
 *     pair 1: [2 3]           high = items[2p + 1]  ≥ every item below it
 *     pair 2: [4 5] …         parent of pair p: (p − 1) >> 1
 *
 * An odd last item stands alone and is both low and high. `isBefore` must be a strict total order.
 */
export class IntervalHeap<T> {
  readonly #items: T[] = []
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  first(): T | undefined {
    return this.#items[0]
  }

  last(): T | undefined {
    return this.#items.length > 1 ? this.#items[1] : this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    const at = items.length
    items.push(item)
    const isHigh = at % 2 === 1
    const sibling = items[at - 1]
    if (isHigh && sibling !== undefined && this.#isBefore(item, sibling)) {
      items[at] = sibling
      items[at - 1] = item
      this.#riseLow(at - 1)
      return
    }
    if (at < 2) return
    const parent = (((at >> 1) - 1) >> 1) * 2
    if (this.#isBefore(item, items[parent] as T)) this.#riseLow(at)
    else this.#riseHigh(at)
  }

  takeFirst(): T | undefined {
    const items = this.#items
    if (items.length < 2) return items.pop()
    const first = items[0]
    items[0] = items.pop() as T
    this.#sinkLow()
    return first
  }

  takeLast(): T | undefined {
    const items = this.#items
    if (items.length < 3) return items.pop()
    const last = items[1]
    items[1] = items.pop() as T
    this.#sinkHigh()
    return last
  }

  /** Keeps only the items that pass. For lazy deletion: call it when most of the heap is dead. */
  retain(isKept: (item: T) => boolean): void {
    const kept = this.#items.filter(isKept)
    this.#items.length = 0
    for (const item of kept) this.push(item)
  }

  *[Symbol.iterator](): Iterator<T> {
    yield* this.#items
  }

  #riseLow(from: number): void {
    const items = this.#items
    const item = items[from] as T
    let at = from
    while (at >= 2) {
      const parent = (((at >> 1) - 1) >> 1) * 2
      if (!this.#isBefore(item, items[parent] as T)) break
      items[at] = items[parent] as T
      at = parent
    }
    items[at] = item
  }

  #riseHigh(from: number): void {
    const items = this.#items
    const item = items[from] as T
    let at = from
    while (at >= 2) {
      const parent = (((at >> 1) - 1) >> 1) * 2 + 1
      if (!this.#isBefore(items[parent] as T, item)) break
      items[at] = items[parent] as T
      at = parent
    }
    items[at] = item
  }

  #sinkLow(): void {
    const items = this.#items
    const count = items.length
    let at = 0
    for (;;) {
      // A pair may have been put the wrong way round by the item that is on its way down.
      if (at + 1 < count && this.#isBefore(items[at + 1] as T, items[at] as T)) this.#swap(at, at + 1)
      const left = 2 * at + 2
      if (left >= count) return
      const right = left + 2
      const child = right < count && this.#isBefore(items[right] as T, items[left] as T) ? right : left
      if (!this.#isBefore(items[child] as T, items[at] as T)) return
      this.#swap(at, child)
      at = child
    }
  }

  #sinkHigh(): void {
    const items = this.#items
    const count = items.length
    let at = 1
    for (;;) {
      if (at % 2 === 1 && this.#isBefore(items[at] as T, items[at - 1] as T)) this.#swap(at, at - 1)
      const pair = at >> 1
      const left = this.#highOf(2 * pair + 1, count)
      if (left < 0) return
      const right = this.#highOf(2 * pair + 2, count)
      const child = right >= 0 && this.#isBefore(items[left] as T, items[right] as T) ? right : left
      if (!this.#isBefore(items[at] as T, items[child] as T)) return
      this.#swap(at, child)
      at = child
    }
  }

  /** Where the high end of a pair is; −1 when there is no such pair. */
  #highOf(pair: number, count: number): number {
    const high = 2 * pair + 1
    if (high < count) return high
    return high - 1 < count ? high - 1 : -1
  }

  #swap(a: number, b: number): void {
    const items = this.#items
    const item = items[a] as T
    items[a] = items[b] as T
    items[b] = item
  }
}
