import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Timers } from './timers.ts'

/** What the timers call, in order, when time goes from one due instant to the next. */
function runAll(timers: Timers): void {
  for (let at = timers.nextAt(); at !== undefined; at = timers.nextAt()) timers.takeDue(at)?.()
}

it('calls timers by instant, and in the order in which they were set at one instant', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5)), (instants) => {
      const timers = new Timers()
      const called: number[] = []
      for (const [i, at] of instants.entries()) timers.add(at, () => called.push(i))
      runAll(timers)
      const expected = instants.map((at, i) => ({ at, i })).toSorted((a, b) => a.at - b.at || a.i - b.i)
      expect(called).toEqual(expected.map(({ i }) => i))
      expect(timers.count).toBe(0)
    }),
  )
})

it('never calls a forgotten timer, however often it is forgotten, and counts only the others', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ at: fc.nat(9), isForgotten: fc.boolean() })), (specs) => {
      const timers = new Timers()
      const called: number[] = []
      const cancels = specs.map(({ at }, i) => timers.add(at, () => called.push(i)))
      specs.forEach(({ isForgotten }, i) => {
        if (!isForgotten) return
        cancels[i]!()
        cancels[i]!()
      })
      const living = specs.flatMap(({ isForgotten }, i) => (isForgotten ? [] : [i]))
      expect(timers.count).toBe(living.length)
      runAll(timers)
      expect(called.toSorted((a, b) => a - b)).toEqual(living)
      for (const cancel of cancels) cancel()
      expect(timers.count).toBe(0)
    }),
  )
})

it('takes nothing that is not due', () => {
  const timers = new Timers()
  timers.add(10, () => {})
  expect(timers.takeDue(9)).toBeUndefined()
  expect(timers.nextAt()).toBe(10)
  expect(timers.takeDue(10)).toBeTypeOf('function')
})

it('holds only what will be called, though every request sets deadlines and forgets nearly all', () => {
  const timers = new Timers()
  const living = Array.from({ length: 100 }, (_, i) => timers.add(1e9 + i, () => {}))
  let mostHeld = 0
  for (let i = 0; i < 100_000; i++) {
    timers.add(1e6 + (i % 1_000), () => {})()
    mostHeld = Math.max(mostHeld, timers.count)
  }
  expect(mostHeld).toBe(living.length)
})

it('lets a timer forget another one of the same instant, and itself', () => {
  const timers = new Timers()
  const called: string[] = []
  let forgetSecond = (): void => {}
  const forgetFirst = timers.add(5, () => {
    called.push('first')
    forgetSecond()
    forgetFirst()
  })
  forgetSecond = timers.add(5, () => called.push('second'))
  timers.add(5, () => called.push('third'))
  runAll(timers)
  expect(called).toEqual(['first', 'third'])
})
