import { expect, it } from 'vitest'
import { VirtualClock } from '../../base/virtual-clock.ts'
import { MemorySharing } from '../../sharing/memory-sharing.ts'
import { CellSalt } from './cell-salt.ts'

const S = 1_000_000

it('is the first that was offered, at every gateway', async () => {
  const clock = new VirtualClock()
  const store = new MemorySharing(clock)
  const [a, b] = [new CellSalt(clock, store, 'of a'), new CellSalt(clock, store, 'of b')]
  await a.start()
  await b.start()
  expect([a.text, b.text]).toEqual(['of a', 'of a'])
  a.stop()
  b.stop()
})

it('stays the same when the store is emptied', async () => {
  const clock = new VirtualClock()
  const store = new MemorySharing(clock)
  const [a, b] = [new CellSalt(clock, store, 'of a'), new CellSalt(clock, store, 'of b')]
  await a.start()
  await b.start()
  store.wipe()
  await clock.run(11 * S)
  expect(await store.salt('of a third')).toBe('of a')
  expect(b.text).toBe('of a')
  a.stop()
  b.stop()
})

it('is the gateway’s own until the store answers, and start waits no longer than a second', async () => {
  const clock = new VirtualClock()
  const store = new MemorySharing(clock)
  await store.salt('of the cell')
  let isAway = true
  const away = {
    async salt(offered: string): Promise<string | undefined> {
      if (!isAway) return store.salt(offered)
      await clock.sleep(2 * S)
      return undefined
    },
  }
  const salt = new CellSalt(clock, away, 'own')
  let startedAt: number | undefined
  void salt.start().then(() => {
    startedAt = clock.now()
  })
  await clock.run(3 * S)
  expect(startedAt).toBe(S)
  expect(salt.text).toBe('own')
  isAway = false
  await clock.run(9 * S)
  expect(salt.text).toBe('of the cell')
  salt.stop()
  await clock.run(60 * S)
  expect(clock.now()).toBe(60 * S)
})
