import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SlotHeap } from './slot-heap.ts'

const CAPACITY = 12

it('always knows the least key, whoever comes and goes', () => {
  const moves = fc.array(fc.record({ slot: fc.nat(CAPACITY - 1), key: fc.integer({ min: -20, max: 20 }) }))
  fc.assert(
    fc.property(moves, (drawn) => {
      const heap = new SlotHeap(CAPACITY)
      const keys = new Map<number, number>()
      for (const { slot, key } of drawn) {
        if (keys.delete(slot)) heap.remove(slot)
        else {
          heap.add(slot, key)
          keys.set(slot, key)
        }
        expect(heap.minKey).toBe(Math.min(...keys.values()))
        expect(heap.min).toBe(keys.size === 0 ? -1 : heap.min)
        if (keys.size > 0) expect(keys.get(heap.min)).toBe(heap.minKey)
      }
    }),
  )
})
