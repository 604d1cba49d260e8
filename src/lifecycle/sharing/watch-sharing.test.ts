import { expect, it } from 'vitest'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { Entry } from '../../domain/entry.ts'
import { SliceBook } from '../../policy/sharing/slice-book.ts'
import { SharingWatch } from './watch-sharing.ts'

const SECOND = 1_000_000
const NO_CALLS = { callCount: 0, answerCount: 0, accountCount: 0, fetchCount: 0, fetchedCount: 0 }

/** A watch over one shard, with what it wrote to the journal. */
function watched() {
  const clock = new VirtualClock()
  const entries: Entry[] = []
  const book = new SliceBook(clock.now(), 'g', { shardCount: 1, forgetMs: 10_000 })
  const watch = new SharingWatch({
    clock,
    journal: { record: (entry) => void entries.push(entry) },
    book,
    renewals: { takeCounts: () => NO_CALLS },
    where: 'server redis://host',
    problem: () => 'Error: nobody there',
  })
  const answer = (gatewayCount: number, silentCount: number): void => {
    for (const call of book.due(clock.now()))
      book.answered(clock.now(), call, { gatewayCount, silentCount, epoch: 'e', gapUs: 0, accounts: [] })
  }
  const changes = () => entries.flatMap((entry) => (entry.kind === 'sharing-changed' ? [entry] : []))
  const last = () => entries.findLast((entry) => entry.kind === 'sharing-reported')
  return { clock, watch, answer, changes, last }
}

it('tells of each change once, and of the state every second', async () => {
  const { clock, watch, answer, changes, last } = watched()
  await clock.run(1)
  watch.start()
  expect(changes()).toMatchObject([{ state: 'alone', because: expect.stringContaining('nobody there') as string }])
  answer(4, 1)
  await clock.run(1 + SECOND / 4)
  watch.stop()
  expect(watch.detail).toContain('shared by 4 gateways')
  const again = watched()
  again.answer(4, 1)
  again.watch.start()
  expect(again.changes()).toMatchObject([{ state: 'shared', gatewayCount: 4 }])
  expect(again.last()).toMatchObject({ gatewayCount: 4, silentCount: 1, excessUs: SECOND / 4, beyondForgetUs: 0 })
  await again.clock.run(3 * SECOND)
  expect(again.changes().map(({ state }) => state)).toEqual(['shared', 'alone'])
  expect(again.watch.detail).toContain('silent for 3.0 s')
  await again.clock.run(13 * SECOND)
  expect(again.last()).toMatchObject({ beyondForgetUs: 3 * SECOND, silentShardCount: 1 })
  expect(again.changes()).toHaveLength(2)
  again.watch.stop()
  expect(last()).toBeDefined()
})
