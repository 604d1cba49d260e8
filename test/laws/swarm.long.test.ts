import { expect, it } from 'vitest'
import { brokenLawsInSwarm } from './run-swarm.ts'

const FIRST_SEED = 10_000

it('every law holds in any run of any configuration', { timeout: 3_600_000 }, async () => {
  expect(await brokenLawsInSwarm(60, FIRST_SEED)).toEqual([])
})
