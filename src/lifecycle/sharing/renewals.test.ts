import { expect, it } from 'vitest'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { ShardAnswer } from '../../policy/sharing/lease-shard.ts'
import { SliceBook } from '../../policy/sharing/slice-book.ts'
import type { Sharing } from '../sharing-ports.ts'
import { Renewals } from './renewals.ts'

it('counts a fetch at its end, so that no report has to take a late one back', async () => {
  const clock = new VirtualClock()
  let answer: (given: ShardAnswer | undefined) => void = () => {}
  const sharing = {
    take: () => new Promise<ShardAnswer | undefined>((resolve) => (answer = resolve)),
  } as unknown as Sharing
  const renewals = new Renewals(clock, sharing, new SliceBook(clock.now(), 'g', { shardCount: 1 }))
  const fetched = renewals.fetch([{ isAsking: false }])
  expect(renewals.takeCounts()).toMatchObject({ fetchCount: 0, fetchedCount: 0 })
  answer(undefined)
  expect(await fetched).toBe(true)
  expect(renewals.takeCounts()).toMatchObject({ fetchCount: 1, fetchedCount: 1 })
})
