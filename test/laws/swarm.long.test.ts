import { expect, it } from 'vitest'
import { brokenLawsInSwarm } from './run-swarm.ts'

it('every law holds in any run of any configuration', { timeout: 240_000 }, async () => {
  expect(await brokenLawsInSwarm(60)).toEqual([])
})
