import fc from 'fast-check'
import { expect, test } from 'vitest'
import { IntervalHeap } from './interval-heap.ts'

type Step = readonly ['push', number] | readonly ['takeFirst'] | readonly ['takeLast'] | readonly ['retain', number]

const step = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('push' as const), fc.integer({ min: 0, max: 30 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('takeFirst' as const)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('takeLast' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('retain' as const), fc.integer({ min: 2, max: 5 })) },
)

test('it behaves like a sorted array that gives from both ends', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps: readonly Step[]) => {
      const heap = new IntervalHeap<number>((a, b) => a < b)
      let twin: number[] = []
      for (const [kind, value = 0] of steps) {
        let taken: readonly unknown[] = []
        if (kind === 'push') {
          // Half the keys are equal: then the items themselves decide.
          heap.push(value, value >> 1)
          twin.push(value)
          twin.sort((a, b) => a - b)
        } else if (kind === 'takeFirst') taken = [heap.takeFirst(), twin.shift()]
        else if (kind === 'takeLast') taken = [heap.takeLast(), twin.pop()]
        else {
          heap.retain((item) => item % value !== 0)
          twin = twin.filter((item) => item % value !== 0)
        }
        expect(taken[0]).toBe(taken[1])
        expect(heap.size).toBe(twin.length)
        expect(heap.first()).toBe(twin[0])
        expect(heap.last()).toBe(twin.at(-1))
      }
      expect([...heap].sort((a, b) => a - b)).toEqual(twin)
    }),
    { numRuns: 400 },
  )
})
