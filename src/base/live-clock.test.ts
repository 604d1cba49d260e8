import { expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { LiveClock } from './live-clock.ts'

it('counts microseconds since 1970, and never backwards', () => {
  const clock = new LiveClock()
  expect(Math.abs(clock.now() / 1_000 - Date.now())).toBeLessThan(60_000)
  let last = clock.now()
  for (let i = 0; i < 10_000; i++) {
    const now = clock.now()
    expect(now).toBeGreaterThanOrEqual(last)
    expect(Number.isInteger(now)).toBe(true)
    last = now
  }
})

it('calls timers in order, none too early, and forgotten ones not at all', async () => {
  const clock = new LiveClock()
  const startedAt = clock.now()
  const seen: Array<{ name: string; lateUs: number }> = []
  const set = (name: string, delayUs: number) =>
    clock.at(startedAt + delayUs, () => seen.push({ name, lateUs: clock.now() - startedAt - delayUs }))
  set('c', 30_000)
  set('a', 10_000)
  set('b1', 20_000)
  set('b2', 20_000)
  set('forgotten', 5_000)()
  set('past', -5_000)
  await eventually('all were called', () => seen.length === 5)
  expect(seen.map(({ name }) => name)).toEqual(['past', 'a', 'b1', 'b2', 'c'])
  for (const { lateUs } of seen) expect(lateUs).toBeGreaterThanOrEqual(0)
})

it('sleeps at least as long as it was told', async () => {
  const clock = new LiveClock()
  const startedAt = clock.now()
  await clock.sleep(15_000)
  expect(clock.now() - startedAt).toBeGreaterThanOrEqual(15_000)
})

it('can run slower than the world, timers included', async () => {
  const world = new LiveClock()
  const slow = new LiveClock(0.25)
  // The slow clock is read between two looks at the other, however far apart a busy machine puts them.
  const read = () => ({ before: world.now(), slow: slow.now(), after: world.now() })
  const from = read()
  await slow.sleep(5_000)
  const to = read()
  const passed = to.slow - from.slow
  expect(passed).toBeGreaterThanOrEqual(5_000)
  expect(4 * passed).toBeGreaterThanOrEqual(to.before - from.after - 8)
  expect(4 * passed).toBeLessThanOrEqual(to.after - from.before + 8)
})

it('takes timers beyond what setTimeout can hold', async () => {
  const clock = new LiveClock()
  let isCalled = false
  clock.at(clock.now() + 100 * 86_400 * 1_000_000, () => {
    isCalled = true
  })
  await clock.sleep(5_000)
  expect(isCalled).toBe(false)
})

it('a timer set by a timer is called too, and an earlier one goes first', async () => {
  const clock = new LiveClock()
  const seen: string[] = []
  clock.at(clock.now() + 5_000, () => {
    seen.push('outer')
    clock.at(clock.now() + 2_000, () => seen.push('inner'))
  })
  clock.at(clock.now() + 60_000, () => seen.push('last'))
  await eventually('all were called', () => seen.length === 3)
  expect(seen).toEqual(['outer', 'inner', 'last'])
})
