import { Heap } from './heap.ts'

/**
 * The timers of a clock, earliest first; at one instant, in the order in which they were set. That tie-break is made
 * once, here, so that live and virtual time agree on it.
 *
 * A forgotten timer stays in the heap as a dead entry until its instant comes or the dead outnumber the living; then
 * one O(n) sweep pays for the n/2 cancellations before it. So memory is at most twice the living timers.
 */
interface Timer {
  readonly at: number
  readonly sequence: number
  fn: (() => void) | undefined
}

/** Sweeping tiny heaps is wasted work: below this many dead timers we do not look. */
const DEAD_BEFORE_SWEEP = 64

export class TimerHeap {
  readonly #timers = new Heap<Timer>((a, b) => a.at < b.at || (a.at === b.at && a.sequence < b.sequence))
  #sequence = 0
  #deadCount = 0

  /** Timers that will still be called. */
  get liveCount(): number {
    return this.#timers.size - this.#deadCount
  }

  /** Entries held in memory, dead ones included: what the sweep bounds. */
  get heldCount(): number {
    return this.#timers.size
  }

  add(at: number, fn: () => void): () => void {
    const timer: Timer = { at, sequence: this.#sequence++, fn }
    this.#timers.push(timer)
    return () => {
      if (timer.fn === undefined) return
      timer.fn = undefined
      this.#deadCount++
      if (this.#deadCount > DEAD_BEFORE_SWEEP && this.#deadCount * 2 > this.#timers.size) this.#sweep()
    }
  }

  /** When the next living timer is due. */
  nextAt(): number | undefined {
    this.#dropDeadHead()
    return this.#timers.peek()?.at
  }

  /** Takes the next living timer if it is due at `now`. */
  takeDue(now: number): (() => void) | undefined {
    this.#dropDeadHead()
    const head = this.#timers.peek()
    if (head === undefined || head.at > now) return undefined
    this.#timers.pop()
    const fn = head.fn
    head.fn = undefined
    return fn
  }

  #dropDeadHead(): void {
    for (let head = this.#timers.peek(); head !== undefined && head.fn === undefined; head = this.#timers.peek()) {
      this.#timers.pop()
      this.#deadCount--
    }
  }

  #sweep(): void {
    this.#timers.retain((timer) => timer.fn !== undefined)
    this.#deadCount = 0
  }
}
