import fc from 'fast-check'
import { expect, test } from 'vitest'
import { IndexedHeap } from './indexed-heap.ts'

interface Item {
  heapIndex: number
  key: number
  readonly sequence: number
}

test('after any pushes, updates, removals and pops it gives items in order', () => {
  const step = fc.tuple(fc.nat(9), fc.nat(50), fc.nat(1_000))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const heap = new IndexedHeap<Item>()
      const twin: Item[] = []
      const sort = (): void => {
        twin.sort((a, b) => a.key - b.key || a.sequence - b.sequence)
      }
      steps.forEach(([kind, key, which], sequence) => {
        let popped: ReadonlyArray<Item | undefined> = []
        const item = twin[which % Math.max(1, twin.length)]
        if (kind < 5 || item === undefined) {
          const fresh = { heapIndex: -1, key, sequence }
          heap.push(fresh, key)
          twin.push(fresh)
        } else if (kind < 7) {
          item.key = key
          heap.update(item, key)
        } else if (kind < 9) {
          heap.remove(item)
          twin.splice(twin.indexOf(item), 1)
        } else popped = [heap.pop(), twin.shift()]
        sort()
        expect(popped[0]).toBe(popped[1])
        expect(heap.peek()).toBe(twin[0])
        expect(heap.peekKey()).toBe(twin[0]?.key)
        expect(heap.size).toBe(twin.length)
        for (const one of twin) expect(heap.has(one)).toBe(true)
      })
    }),
    { numRuns: 300 },
  )
})
