import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { DatabaseUnavailable, type Row } from '../store/database.ts'
import { StoreReadiness } from './store-readiness.ts'

/** A store whose statements end when the test says so. */
function scripted() {
  const clock = new VirtualClock()
  const open: { resolve: (rows: readonly Row[]) => void; reject: (error: Error) => void }[] = []
  let asked = 0
  const database = {
    query: () => {
      asked++
      return new Promise<readonly Row[]>((resolve, reject) => open.push({ resolve, reject }))
    },
  }
  return {
    clock,
    readiness: new StoreReadiness({ clock, database }),
    asked: () => asked,
    answer: () => open.shift()?.resolve([]),
    fail: (error: Error) => open.shift()?.reject(error),
  }
}

describe('readiness by the store', () => {
  it('is yes when the store answers, and one statement serves everybody who asks within a second', async () => {
    const { clock, readiness, asked, answer } = scripted()
    const both = [readiness.ask(), readiness.ask()]
    answer()
    for (const told of await Promise.all(both)) expect(told).toEqual({ isReady: true, because: 'the store answers' })
    expect(await readiness.ask()).toMatchObject({ isReady: true })
    expect(asked()).toBe(1)
    await clock.run(secondsToUs(1))
    const later = readiness.ask()
    expect(asked()).toBe(2)
    answer()
    expect(await later).toMatchObject({ isReady: true })
  })

  it('is no while the store is away, without its address, and yes when it is back', async () => {
    const { clock, readiness, answer, fail } = scripted()
    const first = readiness.ask()
    fail(new DatabaseUnavailable('The database cannot be reached (ECONNREFUSED).', 'connect 127.0.0.1:5432'))
    expect(await first).toEqual({ isReady: false, because: 'The database cannot be reached (ECONNREFUSED).' })
    await clock.run(secondsToUs(1))
    const other = readiness.ask()
    fail(new Error('relation "secret" does not exist'))
    expect(await other).toEqual({ isReady: false, because: 'the store answers with an error' })
    await clock.run(secondsToUs(2))
    const back = readiness.ask()
    answer()
    expect(await back).toMatchObject({ isReady: true })
  })

  it('does not wait for a store that hangs, and sends it one statement only', async () => {
    const { clock, readiness, asked, answer } = scripted()
    for (let i = 0; i < 5; i++) {
      const told = readiness.ask()
      await clock.run(clock.now() + secondsToUs(2))
      expect(await told).toEqual({ isReady: false, because: 'the store does not answer' })
    }
    expect(asked()).toBe(1)
    answer()
    await Promise.resolve()
    expect(await readiness.ask()).toMatchObject({ isReady: true })
  })
})
