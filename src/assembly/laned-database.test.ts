import { describe, expect, it } from 'vitest'
import { Cancellation } from '../base/cancellation.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { LaneFull } from '../domain/corpus.ts'
import type { LaneWait } from '../lifecycle/retrieval-ports.ts'
import type { Database, QueryOptions } from '../store/database.ts'
import { LanedDatabase } from './laned-database.ts'

/** The lanes before the store, in virtual time: what one tenant does is felt by another only as a few statements. */

const STATEMENT_US = msToUs(20)
const LIST: QueryOptions = { lane: 'globex' }

function makeWorld(placesMax = 1) {
  const clock = new VirtualClock()
  /** Lanes of the statements in the order in which they were started. */
  const started: string[] = []
  let isHanging = false
  const inner: Database = {
    async query(_sql, _parameters, options) {
      started.push(`${options?.lane}`)
      await clock.sleep(isHanging ? secondsToUs(60) : STATEMENT_US)
      return []
    },
    run: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
  return {
    clock,
    started,
    database: new LanedDatabase(inner, { clock, placesMax }),
    hang: () => {
      isHanging = true
    },
  }
}

/** A client that asks again as soon as it is answered: searches of four urgent statements, or lists of a patient one. */
async function attack({ clock, database }: ReturnType<typeof makeWorld>, isUrgent: boolean): Promise<void> {
  while (clock.now() < secondsToUs(10)) await database.query('', [], { lane: 'acme', isUrgent })
}

describe('lanes before the store', () => {
  it.each([
    { what: 'a list call', options: LIST, turnsMax: 5 },
    { what: 'a search', options: { ...LIST, isUrgent: true }, turnsMax: 2 },
  ])('let $what of another tenant through while eight connections of one tenant do nothing but ask', async (given) => {
    const world = makeWorld()
    for (let i = 0; i < 8; i++) void attack(world, i % 2 === 0)
    let turns = Number.POSITIVE_INFINITY
    world.clock.at(secondsToUs(5), () => {
      const before = world.started.length
      void world.database.query('', [], given.options).then(() => {
        turns = world.started.indexOf('globex') - before
      })
    })
    await world.clock.run()
    expect(world.started.length).toBeGreaterThan(400)
    expect(turns).toBeLessThanOrEqual(given.turnsMax)
  })

  it('keep half of the connections free of any one tenant', async () => {
    const world = makeWorld(10)
    for (let i = 0; i < 40; i++) void world.database.query('', [], { lane: 'acme' })
    void world.database.query('', [], LIST)
    expect(world.started).toEqual([...Array.from({ length: 5 }, () => 'acme'), 'globex'])
    await world.clock.run()
    expect(world.started).toHaveLength(41)
  })

  it('refuse a tenant that has too much waiting, say when to come back, and refuse no other', async () => {
    const world = makeWorld()
    const asked = Array.from({ length: 100 }, () => world.database.query('', [], { lane: 'acme' }))
    const ended = Promise.allSettled(asked)
    const other = world.database.query('', [], LIST)
    await world.clock.run()
    const refused = (await ended).filter((one) => one.status === 'rejected')
    expect(refused).toHaveLength(100 - 64 - 1)
    for (const { reason } of refused) {
      expect(reason).toBeInstanceOf(LaneFull)
      expect((reason as LaneFull).retryAfterUs).toBeGreaterThanOrEqual(secondsToUs(1))
    }
    await expect(other).resolves.toEqual([])
  })

  it('never start a statement that was cancelled while it waited', async () => {
    const world = makeWorld()
    void world.database.query('', [], { lane: 'acme' })
    const cancellation = new Cancellation()
    const asked = world.database.query('', [], { ...LIST, cancellation })
    cancellation.cancel('late')
    await expect(asked).rejects.toThrow('late')
    await world.clock.run()
    expect(world.started).toEqual(['acme'])
  })

  it('charge a tenant for a statement that it hung up on: the database computes it all the same', async () => {
    const world = makeWorld()
    const leave = async (): Promise<void> => {
      while (world.clock.now() < secondsToUs(10)) {
        const cancellation = new Cancellation()
        const asked = world.database.query('', [], { lane: 'acme', cancellation })
        world.clock.at(world.clock.now() + msToUs(1), () => cancellation.cancel('client-gone'))
        await asked.catch(() => {})
        await world.clock.sleep(msToUs(1))
      }
    }
    const stay = async (): Promise<void> => {
      while (world.clock.now() < secondsToUs(10)) await world.database.query('', [], LIST)
    }
    for (let i = 0; i < 3; i++) void leave()
    for (let i = 0; i < 2; i++) void stay()
    await world.clock.run()
    const share = world.started.filter((lane) => lane === 'globex').length / world.started.length
    expect(share).toBeGreaterThan(0.45)
  })

  it('tell a wait behind one’s own statements from a store that does not answer', async () => {
    const world = makeWorld()
    const waitOf = (): LaneWait => {
      const wait: LaneWait = { isOwnQueue: () => false }
      void world.database.query('', [], { lane: 'acme', wait })
      return wait
    }
    const waits = Array.from({ length: 10 }, waitOf)
    await world.clock.run(msToUs(50))
    expect(waits[0]?.isOwnQueue()).toBe(false)
    expect(waits.at(-1)?.isOwnQueue()).toBe(true)
    await world.clock.run(secondsToUs(1))
    world.hang()
    const hung = Array.from({ length: 3 }, waitOf)
    await world.clock.run(secondsToUs(20))
    expect(hung.map((wait) => wait.isOwnQueue())).toEqual([false, false, false])
  })
})
