import { describe, expect, it } from 'vitest'
import { drawScenario } from './draw-scenario.ts'
import { brokenLawsInSwarm, brokenLawsOf } from './run-swarm.ts'

/** What seeds that have once failed broke. They stay as named cases. */
const NAMED: ReadonlyArray<readonly [what: string, seed: number]> = [
  ['observe only, over its budget: nothing to hold was held', 402353899],
  ['the living left a lane by turns, and the dead outnumbered them', 29903189],
]
/** New cases each time; `swarm.long.test.ts` draws many more. */
const SECONDS = 6

describe('swarm', () => {
  it.each(NAMED)('%s (%i)', async (_what, seed) => {
    expect(await brokenLawsOf(drawScenario(seed), seed)).toEqual([])
  })

  it('every law holds in any run of any configuration', { timeout: 60_000 }, async () => {
    expect(await brokenLawsInSwarm(SECONDS)).toEqual([])
  })
})
