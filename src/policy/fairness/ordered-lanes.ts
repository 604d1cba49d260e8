import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Fairness, FairnessName, WeightChange } from './fairness.ts'
import type { Lane } from './lane.ts'

/**
 * Which lane goes next, when only its head counts? The orders without a notion of share (first come first served,
 * strict priority) differ in one comparison; everything else about them is this heap of lanes.
 *
 * Law L7 does not hold here, which is what these orders are kept to show.
 */
export class OrderedLanes implements Fairness {
  readonly name: FairnessName
  readonly isChargedAhead = true
  readonly #active: IndexedHeap<Lane>

  constructor(name: FairnessName, isBefore: (a: Lane, b: Lane) => boolean) {
    this.name = name
    this.#active = new IndexedHeap(isBefore)
  }

  attach(): void {}

  detach(): boolean {
    return true
  }

  enter(lane: Lane): void {
    if (lane.isActive) this.#active.update(lane)
    else {
      lane.isActive = true
      this.#active.push(lane)
    }
  }

  leave(lane: Lane): void {
    if (!lane.isActive) return
    lane.isActive = false
    this.#active.remove(lane)
  }

  next(): Lane | undefined {
    return this.#active.peek()
  }

  takeTurn(): void {}

  charge(): void {}

  reweigh(_change: WeightChange): void {}

  assertInvariants(): void {
    for (const lane of this.#active) assert(lane.isActive && lane.readyCount > 0, 'a lane in the order has a head')
  }
}
