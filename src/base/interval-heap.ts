/**
 * A heap with two ends: the first and the last item are both at hand in O(1), and either is taken in O(log n). It is
 * van Leeuwen and Wood's interval heap, laid out in one array as pairs (low, high):
 *
 *     pair 0: [0 1]           low  = items[2p]      ≤ every item below it
 *     pair 1: [2 3]           high = items[2p + 1]  ≥ every item below it
 *     pair 2: [4 5] …         parent of pair p: (p − 1) >> 1
 *
 * An odd last item stands alone and is both low and high. Keys lie beside the items in an array of their own, so that
 * finding a place reads numbers and touches no item; `isBefore` decides between equal keys, as a strict total order.
 */
export class IntervalHeap<T> {
  readonly #items: T[] = []
  readonly #keys: number[] = []
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

  push(item: T, key: number): void {
    const at = this.#items.length
    this.#items.push(item)
    this.#keys.push(key)
    if (at % 2 === 1 && this.#less(at, at - 1)) {
      this.#swap(at, at - 1)
      this.#riseLow(at - 1)
    } else if (at >= 2) {
      const parent = lowOfParent(at)
      if (this.#less(at, parent)) this.#riseLow(at)
      else this.#riseHigh(at)
    }
  }

  takeFirst(): T | undefined {
    return this.#take(0)
  }

  takeLast(): T | undefined {
    return this.#take(this.#items.length > 1 ? 1 : 0)
  }

  /** Keeps only the items that pass. For lazy deletion: call it when most of the heap is dead. */
  retain(isKept: (item: T) => boolean): void {
    const items = this.#items.splice(0)
    const keys = this.#keys.splice(0)
    items.forEach((item, at) => {
      if (isKept(item)) this.push(item, keys[at] as number)
    })
  }

  *[Symbol.iterator](): Iterator<T> {
    yield* this.#items
  }

  /** All items, the lows of the pairs before their highs: roughly from the first to the last. */
  *fromFirst(): Iterable<T> {
    for (let at = 0; at < this.#items.length; at += 2) yield this.#items[at] as T
    for (let at = 1; at < this.#items.length; at += 2) yield this.#items[at] as T
  }

  /** Takes the item at an end; the last of the array fills its place and goes down from there. */
  #take(end: 0 | 1): T | undefined {
    const taken = this.#items[end]
    const last = this.#items.pop()
    const key = this.#keys.pop()
    if (last === undefined || key === undefined || this.#items.length <= end) return taken
    this.#items[end] = last
    this.#keys[end] = key
    if (end === 0) this.#sinkLow()
    else this.#sinkHigh()
    return taken
  }

  #less(a: number, b: number): boolean {
    const left = this.#keys[a] as number
    const right = this.#keys[b] as number
    return left < right || (left === right && this.#isBefore(this.#items[a] as T, this.#items[b] as T))
  }

  #riseLow(from: number): void {
    for (let at = from; at >= 2; ) {
      const parent = lowOfParent(at)
      if (!this.#less(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #riseHigh(from: number): void {
    for (let at = from; at >= 2; ) {
      const parent = lowOfParent(at) + 1
      if (!this.#less(parent, at)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #sinkLow(): void {
    const count = this.#keys.length
    for (let at = 0; ; ) {
      // A pair may have been put the wrong way round by the item that is on its way down.
      if (at + 1 < count && this.#less(at + 1, at)) this.#swap(at, at + 1)
      const left = 2 * at + 2
      if (left >= count) return
      const right = left + 2
      const child = right < count && this.#less(right, left) ? right : left
      if (!this.#less(child, at)) return
      this.#swap(at, child)
      at = child
    }
  }

  #sinkHigh(): void {
    const count = this.#keys.length
    for (let at = 1; ; ) {
      if (at % 2 === 1 && this.#less(at, at - 1)) this.#swap(at, at - 1)
      const pair = at >> 1
      const left = highOf(2 * pair + 1, count)
      if (left < 0) return
      const right = highOf(2 * pair + 2, count)
      const child = right >= 0 && this.#less(left, right) ? right : left
      if (!this.#less(at, child)) return
      this.#swap(at, child)
      at = child
    }
  }

  #swap(a: number, b: number): void {
    const item = this.#items[a] as T
    this.#items[a] = this.#items[b] as T
    this.#items[b] = item
    const key = this.#keys[a] as number
    this.#keys[a] = this.#keys[b] as number
    this.#keys[b] = key
  }
}

/** The low end of the pair above the one in which `at` stands. */
function lowOfParent(at: number): number {
  return (((at >> 1) - 1) >> 1) * 2
}

/** Where the high end of a pair is; −1 when there is no such pair. */
function highOf(pair: number, count: number): number {
  const high = 2 * pair + 1
  if (high < count) return high
  return high - 1 < count ? high - 1 : -1
}
