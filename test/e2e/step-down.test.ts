import { expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { HELD_DELAY_MS, HeldClock } from '../support/held-clock.ts'
import { ACME_KEY, startPlatform, testTree } from '../support/start-platform.ts'

it('says that it is not ready before it turns anybody away', async () => {
  const clock = new HeldClock()
  const platform = await startPlatform(testTree({ server: { port: 0, shutdownDelayMs: HELD_DELAY_MS } }), clock)
  const ready = async (): Promise<number> => (await fetch(`${platform.address}/health/ready`)).status
  expect(await ready()).toBe(200)
  const closed = platform.close()
  await eventually('readiness turns off', async () => (await ready()) === 503)
  const models = await fetch(`${platform.address}/v1/models`, { headers: { authorization: `Bearer ${ACME_KEY}` } })
  expect(models.status).toBe(200)
  clock.release()
  await closed
  await expect(fetch(`${platform.address}/health`)).rejects.toThrow('fetch failed')
})
