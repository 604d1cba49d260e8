import type { Sequence } from './sequence.ts'

/**
 * Sequences in order of arrival, linked through themselves: joining, leaving from the middle (an abort) and going back
 * to the head (a preemption) cost O(1) and allocate nothing. A sequence is in one list at a time.
 */
export class SequenceList {
  #first: Sequence | undefined
  #last: Sequence | undefined
  #count = 0

  get first(): Sequence | undefined {
    return this.#first
  }

  get last(): Sequence | undefined {
    return this.#last
  }

  get count(): number {
    return this.#count
  }

  pushLast(sequence: Sequence): void {
    sequence.previous = this.#last
    sequence.next = undefined
    if (this.#last === undefined) this.#first = sequence
    else this.#last.next = sequence
    this.#last = sequence
    this.#count++
  }

  /** Behind all that arrived before it: O(1) for one that arrived last. */
  pushInOrder(sequence: Sequence): void {
    let before = this.#last
    while (before !== undefined && before.ordinal > sequence.ordinal) before = before.previous
    if (before === undefined) this.pushFirst(sequence)
    else if (before.next === undefined) this.pushLast(sequence)
    else {
      sequence.previous = before
      sequence.next = before.next
      before.next.previous = sequence
      before.next = sequence
      this.#count++
    }
  }

  pushFirst(sequence: Sequence): void {
    sequence.next = this.#first
    sequence.previous = undefined
    if (this.#first === undefined) this.#last = sequence
    else this.#first.previous = sequence
    this.#first = sequence
    this.#count++
  }

  remove(sequence: Sequence): void {
    if (sequence.previous === undefined) this.#first = sequence.next
    else sequence.previous.next = sequence.next
    if (sequence.next === undefined) this.#last = sequence.previous
    else sequence.next.previous = sequence.previous
    sequence.previous = undefined
    sequence.next = undefined
    this.#count--
  }

  *[Symbol.iterator](): Generator<Sequence> {
    for (let sequence = this.#first; sequence !== undefined; sequence = sequence.next) yield sequence
  }
}
