/**
 * A queue that cannot grow: when it is full, the oldest item gives way to the newest.
 *
 *   slots   [ e  f  c  d ]     capacity 4, head 2, size 4: shift gives c; push(g) takes c's slot
 *                  ^head
 *
 * `push` returns whether the oldest item was dropped, for callers that count losses.
 */
export class Ring<T> {
  readonly #slots: Array<T | undefined>
  #head = 0
  #size = 0

  constructor(capacity: number) {
    this.#slots = Array.from({ length: Math.max(1, Math.trunc(capacity)) }, () => undefined)
  }

  get size(): number {
    return this.#size
  }

  get capacity(): number {
    return this.#slots.length
  }

  /** The newest item. */
  get last(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[(this.#head + this.#size - 1) % this.#slots.length]
  }

  /** Adds the newest item; true when the oldest was dropped for it. */
  push(item: T): boolean {
    const slots = this.#slots
    const capacity = slots.length
    let tail = this.#head + this.#size
    if (tail >= capacity) tail -= capacity
    slots[tail] = item
    if (this.#size < capacity) {
      this.#size++
      return false
    }
    this.#head = this.#head + 1 === capacity ? 0 : this.#head + 1
    return true
  }

  /** All items, the oldest first. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let i = 0; i < this.#size; i++) yield this.#slots[(this.#head + i) % this.#slots.length] as T
  }

  /** Takes the oldest item. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined
    const slots = this.#slots
    const item = slots[this.#head]
    // The slot is cleared at once, so that a ring that was full does not keep old items alive.
    slots[this.#head] = undefined
    this.#head = this.#head + 1 === slots.length ? 0 : this.#head + 1
    this.#size--
    return item
  }
}
