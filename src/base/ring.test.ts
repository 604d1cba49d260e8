import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Ring } from './ring.ts'

it('agrees with a list that forgets its oldest', () => {
  const commands = fc.array(fc.oneof(fc.nat(100), fc.constant('shift' as const)), { maxLength: 80 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), commands, (capacity, steps) => {
      const ring = new Ring<number>(capacity)
      const twin: number[] = []
      const said: unknown[] = []
      const expected: unknown[] = []
      for (const step of steps) {
        if (step === 'shift') {
          said.push(ring.shift())
          expected.push(twin.shift())
        } else {
          twin.push(step)
          said.push(ring.push(step))
          expected.push(twin.length > capacity)
          if (twin.length > capacity) twin.shift()
        }
        said.push(ring.size)
        expected.push(twin.length)
      }
      expect(said).toEqual(expected)
      expect(ring.capacity).toBe(capacity)
    }),
  )
})
