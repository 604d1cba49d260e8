import { unreachable } from '../../base/assert.ts'
import { DeficitRoundRobin } from './deficit-round-robin.ts'
import type { Fairness, FairnessName } from './fairness.ts'
import { FIFO } from './fifo.ts'
import { Hierarchy } from './hierarchy.ts'
import type { MedianCost } from './median-cost.ts'
import { OrderedLanes } from './ordered-lanes.ts'
import { RoundRobin } from './round-robin.ts'
import type { Share } from './share.ts'
import { STRICT_PRIORITY } from './strict-priority.ts'
import { VirtualTokenCounter } from './virtual-token-counter.ts'
import { WeightedFairQueueing } from './weighted-fair-queueing.ts'

/**
 * Which order of turns does configuration name? The list of all orders, and how each is put together: those that
 * share by weight are one tree with different orders of siblings in it, the others one heap of lanes.
 */
export const FAIRNESS_NAMES: readonly FairnessName[] = [
  'deficit-round-robin',
  'weighted-fair-queueing',
  'virtual-token-counter',
  'round-robin',
  'fifo',
  'strict-priority',
]

/**
 * Rounds in which a share earns a typical turn: shares whose standing differs by a tenth of a turn are told apart. With one
 * round a turn the gap of eight tenants with varied lengths is half as large again (docs/adr/0037).
 */
const ROUNDS_PER_TURN = 10

/** The order that configuration names. A new one is a file beside this and a line here. */
export function makeFairness(name: FairnessName): Fairness {
  switch (name) {
    case 'deficit-round-robin': {
      const makeSiblings = <S extends Share>(typical: MedianCost) =>
        new DeficitRoundRobin<S>(typical, { roundsPerTurn: ROUNDS_PER_TURN })
      return new Hierarchy({ name, isChargedAhead: true, makeSiblings })
    }
    case 'weighted-fair-queueing': {
      const makeSiblings = <S extends Share>() => new WeightedFairQueueing<S>()
      return new Hierarchy({ name, isChargedAhead: true, looksAtHeads: true, makeSiblings })
    }
    case 'virtual-token-counter': {
      const makeSiblings = <S extends Share>() => new VirtualTokenCounter<S>()
      return new Hierarchy({ name, isChargedAhead: false, makeSiblings })
    }
    case 'round-robin': {
      const makeSiblings = <S extends Share>() => new RoundRobin<S>()
      return new Hierarchy({ name, isChargedAhead: true, makeSiblings })
    }
    case 'fifo':
      return new OrderedLanes(name, FIFO)
    case 'strict-priority':
      return new OrderedLanes(name, STRICT_PRIORITY)
    default:
      return unreachable(name)
  }
}
