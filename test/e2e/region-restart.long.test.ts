import { expect, it } from 'vitest'
import { EU, killAndRestart, lostOf, US, useRegions } from '../support/region-loss.ts'
import { freePort } from '../support/servers.ts'

/** With short answers on one machine; `two-regions.long.test.ts` has long ones, over bad lines. */
const start = useRegions()
const TOKENS = 40

it('a region that is killed takes nobody of the other one with it, and is used again', {
  timeout: 240_000,
}, async () => {
  const [euPort, usPort] = await Promise.all([freePort(), freePort()])
  const at = (port: number): string => `http://127.0.0.1:${port}`
  const eu = await start({ ...EU, port: euPort, peer: { name: 'us', url: at(usPort) } })
  const startUs = () => start({ ...US, port: usPort, peer: { name: 'eu', url: at(euPort) } })
  expect(lostOf(await killAndRestart(eu, startUs, TOKENS))).toEqual([])
})
