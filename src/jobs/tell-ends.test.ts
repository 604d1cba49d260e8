import { expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { JobNotice } from '../domain/job.ts'
import type { JobStore } from '../lifecycle/job-ports.ts'
import { EndTeller, NOTICE_KEPT_MS, pauseMs } from './tell-ends.ts'

const notice: JobNotice = { job: { tenantId: 'a', id: 'batch_1' }, ending: 'failed', createdAtMs: 0, tries: 3 }

async function told(outcome: 'told' | 'failed' | undefined, one: JobNotice): Promise<string[]> {
  const done: string[] = []
  const store = {
    takeNotices: () => Promise.resolve([one]),
    dropNotice: () => Promise.resolve(void done.push('dropped')),
    delayNotice: (_: unknown, untilMs: number) => Promise.resolve(void done.push(`again at ${untilMs}`)),
  } as unknown as JobStore
  const sender = { send: () => (outcome === undefined ? undefined : Promise.resolve(outcome)) }
  const teller = new EndTeller({ clock: new VirtualClock(), store, sender, onFault: () => done.push('fault') })
  teller.wake()
  await teller.close()
  return done
}

it('drops what was told, what nobody wants, and what is three days old', async () => {
  expect(await told('told', notice)).toEqual(['dropped'])
  expect(await told(undefined, notice)).toEqual(['dropped'])
  expect(await told('failed', { ...notice, createdAtMs: -NOTICE_KEPT_MS })).toEqual(['dropped'])
})

it('tries again later and later', async () => {
  expect(await told('failed', notice)).toEqual(['again at 20000'])
  expect([1, 2, 20].map(pauseMs)).toEqual([5_000, 10_000, 4 * 3_600_000])
})
