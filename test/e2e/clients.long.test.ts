import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TRIALS, type Trial } from '../support/client-trials.ts'
import { type ClientWorld, startClientWorld } from '../support/client-world.ts'
import { missing } from '../support/installed.ts'

/** The table of docs/operations/clients.md, row by row. */
let world: ClientWorld
beforeAll(async () => {
  world = await startClientWorld()
}, 60_000)
afterAll(() => world.close())

describe('clients', () => {
  const isThere = ({ program }: Trial): boolean => program === undefined || missing(program) === undefined
  it.each(TRIALS.filter(isThere).map((trial) => [trial.client, trial.feature, trial] as const))(
    '%s: %s',
    async (_client, _feature, { run }) => expect(await run(world.platform).then(() => 'works')).toBe('works'),
    120_000,
  )
})
