import fc from 'fast-check'
import { expect, it } from 'vitest'
import { TimerHeap } from './timer-heap.ts'

/** What the timers call, in order, when time goes from one due instant to the next. */
function runAll(heap: TimerHeap): void {
  for (let at = heap.nextAt(); at !== undefined; at = heap.nextAt()) heap.takeDue(at)?.()
}

it('calls timers by instant, and in the order in which they were set at one instant', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5)), (instants) => {
      const heap = new TimerHeap()
      const called: number[] = []
      for (const [i, at] of instants.entries()) heap.add(at, () => called.push(i))
      runAll(heap)
      const expected = instants.map((at, i) => ({ at, i })).toSorted((a, b) => a.at - b.at || a.i - b.i)
      expect(called).toEqual(expected.map(({ i }) => i))
      expect(heap).toMatchObject({ liveCount: 0, heldCount: 0 })
    }),
  )
})

it('never calls a forgotten timer, and counts only the living', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ at: fc.nat(9), isForgotten: fc.boolean() })), (timers) => {
      const heap = new TimerHeap()
      const called: number[] = []
      const cancels = timers.map(({ at }, i) => heap.add(at, () => called.push(i)))
      timers.forEach(({ isForgotten }, i) => {
        if (!isForgotten) return
        cancels[i]!()
        cancels[i]!()
      })
      const living = timers.flatMap(({ isForgotten }, i) => (isForgotten ? [] : [i]))
      expect(heap.liveCount).toBe(living.length)
      runAll(heap)
      expect(called.toSorted((a, b) => a - b)).toEqual(living)
      for (const cancel of cancels) cancel()
      expect(heap).toMatchObject({ liveCount: 0, heldCount: 0 })
    }),
  )
})

it('takes nothing that is not due', () => {
  const heap = new TimerHeap()
  heap.add(10, () => {})
  expect(heap.takeDue(9)).toBeUndefined()
  expect(heap.nextAt()).toBe(10)
  expect(heap.takeDue(10)).toBeTypeOf('function')
})

it('holds at most twice the living, though every request sets deadlines and forgets nearly all', () => {
  const heap = new TimerHeap()
  const living = Array.from({ length: 100 }, (_, i) => heap.add(1e9 + i, () => {}))
  let mostHeld = 0
  for (let i = 0; i < 100_000; i++) {
    heap.add(1e6 + (i % 1_000), () => {})()
    mostHeld = Math.max(mostHeld, heap.heldCount)
  }
  expect(mostHeld).toBeLessThanOrEqual(2 * living.length + 65)
  expect(heap.liveCount).toBe(living.length)
})
