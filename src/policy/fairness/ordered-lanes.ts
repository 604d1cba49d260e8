import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import { type Debt, type Fairness, type FairnessName, NO_DEBT } from './fairness.ts'
import type { Lane } from './lane.ts'

/**
 * Which lane goes next, when only its head counts? The orders without a notion of share (first come first served,
 * strict priority) differ in what they look at; everything else about them is these heaps of lanes, one a rank.
 *
 * Law L7 does not hold here, which is what these orders are kept to show.
 */
export interface HeadOrder {
  /** A lane of a lower rank goes before all of a higher one. */
  readonly rankOf: (lane: Lane) => number
  /** Inside a rank: smallest first; among equals whoever was offered first. */
  readonly keyOf: (lane: Lane) => number
}

export class OrderedLanes implements Fairness {
  readonly name: FairnessName
  readonly isChargedAhead = true
  readonly #order: HeadOrder
  readonly #ranks: Array<IndexedHeap<Lane>> = []

  constructor(name: FairnessName, order: HeadOrder) {
    this.name = name
    this.#order = order
  }

  attach(): void {}

  detach(): boolean {
    return true
  }

  enter(lane: Lane): void {
    const heap = this.#heapOf(lane)
    const key = this.#order.keyOf(lane)
    lane.sequence = lane.head()?.sequence ?? 0
    if (lane.isAside) return
    if (lane.isActive) heap.update(lane, key)
    else heap.push(lane, key)
    lane.isActive = true
  }

  leave(lane: Lane): void {
    if (!lane.isActive) return
    lane.isActive = false
    if (lane.isAside) lane.isAside = false
    else this.#heapOf(lane).remove(lane)
  }

  pass(lane: Lane): void {
    lane.isAside = true
    this.#heapOf(lane).remove(lane)
  }

  recall(lane: Lane): void {
    lane.isAside = false
    lane.sequence = lane.head()?.sequence ?? 0
    this.#heapOf(lane).push(lane, this.#order.keyOf(lane))
  }

  next(): Lane | undefined {
    for (const heap of this.#ranks) {
      const lane = heap.peek()
      if (lane !== undefined) return lane
    }
    return undefined
  }

  takeTurn(): void {}

  charge(): void {}

  roundsOwedTo(): number {
    return 1
  }

  turnsOwedTo(): number {
    return 1
  }

  debtOf(): Debt {
    return NO_DEBT
  }

  reweigh(): void {}

  assertInvariants(): void {
    for (const heap of this.#ranks) {
      for (const lane of heap) assert(lane.isActive && lane.readyCount > 0, 'a lane in the order has a head')
    }
  }

  #heapOf(lane: Lane): IndexedHeap<Lane> {
    const rank = this.#order.rankOf(lane)
    while (this.#ranks.length <= rank) this.#ranks.push(new IndexedHeap<Lane>())
    return this.#ranks[rank] as IndexedHeap<Lane>
  }
}
