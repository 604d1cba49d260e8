import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairQueue, type Queued } from './fair-queue.ts'

const ONE_PLACE = { placesMax: 1, laneRunningMax: 1, depthMax: 100 }

/** Runs everything that waits, one after the other; the values in the order of their turns. */
function serveAll(queue: FairQueue<string>, costOf: (value: string) => number = () => 1_000): string[] {
  const served: string[] = []
  for (let next = queue.take(); next !== undefined; next = queue.take()) {
    served.push(next.value)
    queue.end(next, costOf(next.value))
    queue.assertInvariants()
  }
  return served
}

const fill = (queue: FairQueue<string>, lane: string, count: number, isUrgent: boolean): void => {
  for (let i = 0; i < count; i++) queue.offer(lane, `${lane}${isUrgent ? '!' : ''}${i}`, isUrgent)
}

describe('a fair queue', () => {
  it('gives lanes turns, and keeps the order inside a lane', () => {
    const queue = new FairQueue<string>(ONE_PLACE)
    fill(queue, 'a', 3, false)
    fill(queue, 'b', 2, false)
    expect(serveAll(queue).filter((value) => value.startsWith('a'))).toEqual(['a0', 'a1', 'a2'])
  })

  it.each([
    { isUrgent: false, turnsMax: 5 },
    { isUrgent: true, turnsMax: 2 },
  ])('serves another tenant after a few turns, however much one has (urgent: $isUrgent)', ({ isUrgent, turnsMax }) => {
    const queue = new FairQueue<string>(ONE_PLACE)
    fill(queue, 'a', 50, true)
    fill(queue, 'a', 50, false)
    const warm = Array.from({ length: 20 }, () => queue.take()).filter((one) => one !== undefined)
    for (const one of warm) queue.end(one, 1_000)
    queue.offer('b', 'b', isUrgent)
    expect(serveAll(queue).indexOf('b')).toBeLessThan(turnsMax)
  })

  it('lets no lane run more than its places, and gives the others to the rest', () => {
    const queue = new FairQueue<string>({ placesMax: 4, laneRunningMax: 2, depthMax: 100 })
    fill(queue, 'a', 10, false)
    fill(queue, 'b', 10, true)
    const running = [queue.take(), queue.take(), queue.take(), queue.take()] as Queued<string>[]
    expect(running.map(({ lane }) => lane).sort()).toEqual(['a', 'a', 'b', 'b'])
    expect(queue.take()).toBeUndefined()
    queue.end(running.find(({ lane }) => lane === 'a') as Queued<string>, 1_000)
    expect(queue.take()?.lane).toBe('a')
  })

  it('charges what work really cost: dear work has fewer turns', () => {
    const queue = new FairQueue<string>(ONE_PLACE)
    fill(queue, 'dear', 100, false)
    fill(queue, 'cheap', 100, false)
    const first = serveAll(queue, (value) => (value.startsWith('dear') ? 10_000 : 1_000)).slice(0, 60)
    const dear = first.filter((value) => value.startsWith('dear')).length
    expect(dear).toBeGreaterThan(2)
    expect(dear).toBeLessThan(15)
  })

  it('refuses what is over the bound of a lane, and of that lane alone', () => {
    const queue = new FairQueue<string>({ ...ONE_PLACE, depthMax: 3 })
    fill(queue, 'a', 3, true)
    expect(queue.offer('a', 'too much', false)).toBeUndefined()
    expect(queue.offer('b', 'fits', false)).toBeDefined()
    expect(queue.waitingIn('a')).toBe(3)
  })

  it('forgets idle lanes, so that names do not fill the memory', () => {
    const queue = new FairQueue<string>(ONE_PLACE)
    for (let i = 0; i < 10_000; i++) {
      queue.offer(`lane-${i}`, 'x', false)
      queue.end(queue.take() as Queued<string>, 1_000)
    }
    expect(queue.laneCount).toBeLessThanOrEqual(4_096)
  })

  it('keeps its books through any order of offers, turns, ends and withdrawals', () => {
    const step = fc.record({
      kind: fc.constantFrom('offer', 'offer', 'take', 'end', 'withdraw'),
      lane: fc.constantFrom('a', 'b', 'c'),
      isUrgent: fc.boolean(),
      cost: fc.integer({ min: 0, max: 100_000 }),
      pick: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new FairQueue<number>({ placesMax: 3, laneRunningMax: 2, depthMax: 5 })
        const waiting: Queued<number>[] = []
        const running: Queued<number>[] = []
        for (const { kind, lane, isUrgent, cost, pick } of steps) {
          if (kind === 'offer') {
            const place = queue.offer(lane, 0, isUrgent)
            const isFull = waiting.filter((one) => one.lane === lane).length >= 5
            expect(place === undefined).toBe(isFull)
            if (place !== undefined) waiting.push(place)
          } else if (kind === 'take') {
            const next = queue.take()
            if (next !== undefined) running.push(...waiting.splice(waiting.indexOf(next), 1))
            else {
              // Work conserving: nothing is held back that may run.
              const mayRun = (name: string) => running.filter((one) => one.lane === name).length < 2
              expect(running.length === 3 || !waiting.some((one) => mayRun(one.lane))).toBe(true)
            }
          } else if (kind === 'end' && running.length > 0) {
            queue.end(running.splice(pick % running.length, 1)[0] as Queued<number>, cost)
          } else if (kind === 'withdraw' && waiting.length > 0) {
            expect(queue.withdraw(waiting.splice(pick % waiting.length, 1)[0] as Queued<number>)).toBe(true)
          }
          queue.assertInvariants()
        }
        expect(queue.withdrawAll()).toHaveLength(waiting.length)
        queue.assertInvariants()
      }),
    )
  })
})
