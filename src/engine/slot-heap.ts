/**
 * A min-heap of small slot numbers by key, from which any slot can leave: the engine asks for the earliest finish and
 * the longest context among sequences that come and go. Typed arrays throughout; nothing is allocated after the start.
 *
 * `#slots` is the heap; `#indexes[slot]` says where a slot stands in it, −1 when it does not.
 */
export class SlotHeap {
  readonly #slots: Int32Array
  readonly #indexes: Int32Array
  readonly #keys: Float64Array
  #count = 0

  constructor(capacity: number) {
    this.#slots = new Int32Array(capacity)
    this.#indexes = new Int32Array(capacity).fill(-1)
    this.#keys = new Float64Array(capacity)
  }

  /** The slot with the least key, −1 when empty. */
  get min(): number {
    return this.#count === 0 ? -1 : (this.#slots[0] as number)
  }

  /** The least key, infinite when empty. */
  get minKey(): number {
    return this.#count === 0 ? Number.POSITIVE_INFINITY : (this.#keys[this.#slots[0] as number] as number)
  }

  add(slot: number, key: number): void {
    this.#keys[slot] = key
    this.#rise(this.#count++, slot)
  }

  remove(slot: number): void {
    const index = this.#indexes[slot] as number
    const last = this.#slots[--this.#count] as number
    this.#indexes[slot] = -1
    if (last === slot) return
    // The last slot fills the gap; it may belong above or below it.
    this.#rise(index, last)
    this.#sink(this.#indexes[last] as number, last)
  }

  #rise(from: number, slot: number): void {
    const key = this.#keys[slot] as number
    let index = from
    while (index > 0) {
      const up = (index - 1) >> 1
      const parent = this.#slots[up] as number
      if ((this.#keys[parent] as number) <= key) break
      this.#put(index, parent)
      index = up
    }
    this.#put(index, slot)
  }

  #sink(from: number, slot: number): void {
    const key = this.#keys[slot] as number
    let index = from
    for (;;) {
      let child = 2 * index + 1
      if (child >= this.#count) break
      if (child + 1 < this.#count && this.#keyAt(child + 1) < this.#keyAt(child)) child++
      if (this.#keyAt(child) >= key) break
      this.#put(index, this.#slots[child] as number)
      index = child
    }
    this.#put(index, slot)
  }

  #keyAt(index: number): number {
    return this.#keys[this.#slots[index] as number] as number
  }

  #put(index: number, slot: number): void {
    this.#slots[index] = slot
    this.#indexes[slot] = index
  }
}
