import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkGroup, readGroups } from './docs-check/check-commands.ts'
import { BOUNDS, type DocsWorld, makeDocsWorld } from './docs-check/docs-world.ts'

/** `npm run docs:check` as a part of the tests: one for each command of the documentation, shortened where it takes long. */
describe('the documentation', () => {
  let world: DocsWorld
  beforeAll(async () => {
    world = await makeDocsWorld()
  }, BOUNDS.wallSeconds * 1_000)
  afterAll(() => world?.close())

  it.each(readGroups().map((group) => [group.text, group] as const))(
    '%s',
    { timeout: BOUNDS.wallSeconds * 1_000 },
    async (_, group) => {
      const { outcome, because, places } = await checkGroup(group, world, false)
      expect({ outcome, because, places }).toMatchObject({ outcome: expect.not.stringMatching('failed') })
    },
  )
})
