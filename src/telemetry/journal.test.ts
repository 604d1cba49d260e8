import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arrived, story } from '../../test/support/entries.ts'
import type { Entry } from '../domain/entry.ts'
import { LiveJournal, type Subscriber } from './journal.ts'

/** Remembers what it was given, and does to each entry what the test says. */
function makeSubscriber(name: string, act: (entry: Entry) => void | Promise<void> = () => {}) {
  const taken: Entry[] = []
  const subscriber: Subscriber = {
    name,
    take: (entry) => {
      const result = act(entry)
      taken.push(entry)
      return result
    },
  }
  return { subscriber, taken }
}

function makeScheduled() {
  const turns: Array<() => void> = []
  const journal = new LiveJournal({ schedule: (drain) => turns.push(drain) })
  const runAll = () => {
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn()
  }
  return { journal, turns, runAll }
}

const entries = (count: number): Entry[] =>
  Array.from({ length: count }, (_, i) => arrived({ at: i, ticketId: `t${i}` }))

describe('LiveJournal', () => {
  it('delivers everything in order, to everyone, and not before the scheduler says so', () => {
    const { journal, runAll } = makeScheduled()
    const a = makeSubscriber('a')
    const b = makeSubscriber('b')
    journal.subscribe(a.subscriber)
    journal.subscribe(b.subscriber)
    const recorded = story()
    for (const entry of recorded) journal.record(entry)
    expect(a.taken).toEqual([])
    runAll()
    expect(a.taken).toEqual(recorded)
    expect(b.taken).toEqual(recorded)
  })

  it('offers a subscriber the kinds that it takes, and no others', () => {
    const { journal, runAll } = makeScheduled()
    const all = makeSubscriber('all')
    const ends = makeSubscriber('ends')
    journal.subscribe(all.subscriber)
    const recorded = story()
    for (const entry of recorded) journal.record(entry)
    journal.subscribe({ ...ends.subscriber, kinds: new Set(['settled']) })
    for (const entry of recorded) journal.record(entry)
    runAll()
    expect(all.taken).toEqual([...recorded, ...recorded])
    expect(ends.taken).toEqual(recorded.filter(({ kind }) => kind === 'settled'))
    expect(journal.view().map(({ taken }) => taken)).toEqual([2 * recorded.length, 1])
  })

  it('waits for a good moment, unless a burst comes: then for the next one', () => {
    const asked: string[] = []
    const journal = new LiveJournal({ schedule: (_drain, when) => asked.push(when) })
    const a = makeSubscriber('a')
    journal.subscribe(a.subscriber)
    for (const entry of entries(1_000)) journal.record(entry)
    expect(asked).toEqual(['soon'])
    for (const entry of entries(1_000)) journal.record(entry)
    expect(asked).toEqual(['soon', 'next'])
  })

  it('asks for one turn however many entries wait, and works through many in batches', () => {
    const { journal, turns, runAll } = makeScheduled()
    const a = makeSubscriber('a')
    journal.subscribe(a.subscriber)
    for (const entry of entries(1_000)) journal.record(entry)
    expect(turns.length).toBe(1)
    turns.shift()?.()
    expect(a.taken.length).toBeGreaterThan(0)
    expect(a.taken.length).toBeLessThan(1_000)
    runAll()
    expect(a.taken.length).toBe(1_000)
  })

  it('loses the oldest when a ring is full, counts them, and spares the other subscribers', () => {
    const journal = new LiveJournal()
    const small = makeSubscriber('small')
    const large = makeSubscriber('large')
    journal.subscribe(small.subscriber, 10)
    journal.subscribe(large.subscriber, 100)
    const recorded = entries(25)
    for (const entry of recorded) journal.record(entry)
    journal.drain()
    expect(small.taken).toEqual(recorded.slice(15))
    expect(large.taken).toEqual(recorded)
    expect(journal.view()).toMatchObject([
      { name: 'small', taken: 10, dropped: 15, waiting: 0 },
      { name: 'large', taken: 25, dropped: 0, waiting: 0 },
    ])
  })

  it('passes over a busy subscriber until its promise settles, and goes on by itself', async () => {
    const { journal, runAll } = makeScheduled()
    const gate = Promise.withResolvers<void>()
    const slow = makeSubscriber('slow', (entry) => (entry.at === 0 ? gate.promise : undefined))
    const quick = makeSubscriber('quick')
    journal.subscribe(slow.subscriber)
    journal.subscribe(quick.subscriber)
    for (const entry of entries(5)) journal.record(entry)
    runAll()
    expect([slow.taken.length, quick.taken.length]).toEqual([1, 5])
    gate.resolve()
    await Promise.resolve()
      .then(() => {})
      .then(() => {})
    runAll()
    expect(slow.taken.length).toBe(5)
    expect(journal.view()[0]).toMatchObject({ taken: 5, dropped: 0 })
  })

  it('counts what a subscriber throws at or rejects, and tells what it said', async () => {
    const journal = new LiveJournal()
    const thrower = makeSubscriber('thrower', () => {
      throw new Error('disk full')
    })
    const rejecter = makeSubscriber('rejecter', () => Promise.reject(new Error('gone')))
    journal.subscribe(thrower.subscriber)
    journal.subscribe(rejecter.subscriber)
    for (const entry of entries(3)) journal.record(entry)
    for (let i = 0; i < 4; i++) {
      journal.drain()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(journal.view()).toMatchObject([
      { name: 'thrower', taken: 0, dropped: 3, lastError: 'disk full' },
      { name: 'rejecter', taken: 0, dropped: 3, lastError: 'gone' },
    ])
  })

  it('is not held up by a subscriber that answers each entry with another', () => {
    const journal = new LiveJournal()
    const echo = makeSubscriber('echo', () => journal.record(arrived()))
    journal.subscribe(echo.subscriber)
    journal.record(arrived())
    journal.drain()
    expect(echo.taken.length).toBe(1)
    journal.drain()
    expect(echo.taken.length).toBe(2)
  })

  it('does not throw when the scheduler does, and delivers later', () => {
    let isBroken = true
    const turns: Array<() => void> = []
    const journal = new LiveJournal({
      schedule: (drain) => {
        if (isBroken) throw new Error('no scheduler')
        turns.push(drain)
      },
    })
    const a = makeSubscriber('a')
    journal.subscribe(a.subscriber)
    journal.record(arrived())
    isBroken = false
    journal.record(arrived())
    turns[0]?.()
    expect(a.taken.length).toBe(2)
  })
})

describe('law L11: a dead or slow subscriber changes nothing for anybody else', () => {
  const behaviours = fc.constantFrom('good', 'throws', 'rejects', 'hangs', 'throws-sometimes', 'flush-throws')

  it('whatever the others do, a good subscriber gets every entry, and every entry of the others is accounted for', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(behaviours, { maxLength: 4 }),
        fc.array(fc.boolean(), { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        async (others, drains, ringEntries) => {
          const journal = new LiveJournal()
          const good = makeSubscriber('good')
          for (const [i, behaviour] of others.entries()) journal.subscribe(misbehaving(`${i}`, behaviour), ringEntries)
          journal.subscribe(good.subscriber)
          const recorded = entries(drains.length)
          for (const [i, entry] of recorded.entries()) {
            expect(() => journal.record(entry)).not.toThrow()
            if (drains[i] === true) journal.drain()
          }
          journal.drain()
          expect(good.taken).toEqual(recorded)
          await new Promise((resolve) => setImmediate(resolve))
          for (const view of journal.view()) {
            const inHand = recorded.length - view.taken - view.dropped - view.waiting
            expect(inHand === 0 || inHand === 1).toBe(true)
            expect(view.waiting).toBeLessThanOrEqual(view.name === 'good' ? recorded.length : ringEntries)
          }
        },
      ),
      { numRuns: 60 },
    ))
})

function misbehaving(name: string, behaviour: string): Subscriber {
  let count = 0
  return {
    name,
    take: () => {
      count++
      if (behaviour === 'throws' || (behaviour === 'throws-sometimes' && count % 3 === 0)) throw new Error('no')
      if (behaviour === 'rejects') return Promise.reject(new Error('no'))
      if (behaviour === 'hangs') return new Promise(() => {})
      return undefined
    },
    flush: () => {
      if (behaviour === 'flush-throws') throw new Error('no')
    },
  }
}
