import { type HeapItem, IndexedHeap } from './indexed-heap.ts'

/**
 * The timers of a clock, earliest first; at one instant, in the order in which they were set. That tie-break is made
 * once, here, so that live and virtual time agree on it.
 *
 * A forgotten timer leaves the heap at once, in O(log n): every request sets several deadlines and forgets nearly all of
 * them, and what is held is what will be called.
 */
interface Timer extends HeapItem {
  fn: (() => void) | undefined
}

export class Timers {
  readonly #heap = new IndexedHeap<Timer>()
  #sequence = 0

  /** Timers that will still be called. */
  get count(): number {
    return this.#heap.size
  }

  /** The returned function forgets the timer; it does nothing once the timer was called. */
  add(at: number, fn: () => void): () => void {
    const timer: Timer = { heapIndex: -1, sequence: this.#sequence++, fn }
    this.#heap.push(timer, at)
    return () => {
      if (timer.fn === undefined) return
      timer.fn = undefined
      this.#heap.remove(timer)
    }
  }

  /** When the next timer is due. */
  nextAt(): number | undefined {
    return this.#heap.peekKey()
  }

  /** Takes the next timer if it is due at `now`. */
  takeDue(now: number): (() => void) | undefined {
    const at = this.#heap.peekKey()
    if (at === undefined || at > now) return undefined
    const timer = this.#heap.pop() as Timer
    const { fn } = timer
    // Whoever keeps the forgetting function of a timer that was called keeps nothing else alive.
    timer.fn = undefined
    return fn
  }
}
