import { describe, expect, it } from 'vitest'
import { spreadOut } from './draw-regions.ts'
import { drawBefore } from './draw-scenario.ts'
import { brokenLawsInSwarm, brokenLawsOf } from './run-swarm.ts'

/** What seeds that have once failed broke. They stay as named cases. */
const NAMED: ReadonlyArray<readonly [what: string, seed: number]> = [
  ['observe only, over its budget: nothing to hold was held', 402353899],
  ['a ticket that was refused had its guard model asked after the run was over', 488769899],
  ['the living left a lane by turns, and the dead outnumbered them', 29903189],
]
/** `swarm.long.test.ts` and `npm run swarm` draw many more. */
const SECONDS = 3
const FIRST_SEED = 1

describe('swarm', () => {
  it.each(NAMED)('%s (%i)', async (_what, seed) => {
    const drawn = drawBefore(seed)
    expect(await brokenLawsOf(drawn, seed)).toEqual([])
    expect(await brokenLawsOf(spreadOut(drawn, seed), seed)).toEqual([])
  })

  it('every law holds in any run of any configuration', { timeout: 60_000 }, async () => {
    expect(await brokenLawsInSwarm(SECONDS, FIRST_SEED)).toEqual([])
  })
})
