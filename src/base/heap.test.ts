import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Heap } from './heap.ts'

const drain = <T>(heap: Heap<T>): T[] => {
  const items: T[] = []
  while (heap.size > 0) items.push(heap.pop() as T)
  return items
}

it('gives what a sort gives', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (numbers) => {
      const heap = new Heap<number>((a, b) => a < b)
      for (const number of numbers) heap.push(number)
      expect(drain(heap)).toEqual(numbers.toSorted((a, b) => a - b))
      expect(heap.pop()).toBeUndefined()
    }),
  )
})

/** Commands against a naive twin: a sorted list. */
type Command = { readonly kind: 'push'; readonly value: number } | { readonly kind: 'pop' | 'peek' | 'keep-even' }
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('push' as const), value: fc.nat(50) }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'pop' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'peek' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'keep-even' as const }) },
)

it('agrees with a sorted list, whatever is done to it', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const heap = new Heap<number>((a, b) => a < b)
      let twin: number[] = []
      const said: unknown[] = []
      const expected: unknown[] = []
      for (const one of commands) {
        if (one.kind === 'push') {
          heap.push(one.value)
          twin = [...twin, one.value].toSorted((a, b) => a - b)
        } else if (one.kind === 'keep-even') {
          heap.retain((value) => value % 2 === 0)
          twin = twin.filter((value) => value % 2 === 0)
        } else {
          said.push(one.kind === 'pop' ? heap.pop() : heap.peek())
          expected.push(one.kind === 'pop' ? twin.shift() : twin[0])
        }
        said.push(heap.size)
        expected.push(twin.length)
      }
      expect(said).toEqual(expected)
      expect(drain(heap)).toEqual(twin)
    }),
  )
})
