import { expect, it } from 'vitest'
import { makeRequest } from '../../../test/support/requests.ts'
import { secondsToUs } from '../../base/clock.ts'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { Settled } from '../../domain/entry.ts'
import type { Arrivals } from '../scenario/scenario.ts'
import { Client, type Serve } from './client.ts'
import { ClientScripts } from './scripts.ts'

/** How many requests were under way at most, when each takes a second, and how many there were. */
async function drive(arrivals: Arrivals, load: number): Promise<{ most: number; sent: number }> {
  const clock = new VirtualClock()
  let open = 0
  let most = 0
  let sent = 0
  const serve: Serve = async () => {
    sent++
    most = Math.max(most, ++open)
    await clock.sleep(secondsToUs(1))
    open--
    return {} as Settled
  }
  const { tenant, key } = makeRequest({})
  const lengths = { kind: 'fixed', tokens: 10 } as const
  const spec = { tenant: tenant.id, model: 'm', arrivals, prompt: lengths, output: lengths }
  const parts = { clock, scripts: new ClientScripts(), serve, caller: { tenant, key }, spec, seed: 1, name: 'a' }
  new Client({ ...parts, endAt: secondsToUs(100), load }).start()
  await clock.run()
  return { most, sent }
}

it('has as many closed sessions as the load says', async () => {
  const closed: Arrivals = { kind: 'closed', sessions: 4, thinkS: 0 }
  expect((await drive(closed, 1)).most).toBe(4)
  expect((await drive(closed, 2.5)).most).toBe(10)
  expect((await drive(closed, 0.01)).most).toBe(1)
})

it('sends as many open arrivals as the load says', async () => {
  const open: Arrivals = { kind: 'poisson', ratePerS: 10 }
  const ratio = (await drive(open, 3)).sent / (await drive(open, 1)).sent
  expect(ratio).toBeGreaterThan(2.7)
  expect(ratio).toBeLessThan(3.3)
})
