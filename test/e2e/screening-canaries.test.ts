import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CanaryEngines, sendWay, WAYS } from '../support/canary-ways.ts'
import { SCREENED_ROUTES } from '../support/screened-routes.ts'
import { ACME_KEY, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/**
 * Law L14 at the engines: values that are nowhere else are sent through every route that takes text.
 * `screening-canaries.long.test.ts` searches for them in everything that a process writes, too, and when engines fail.
 */
let engines: CanaryEngines
let platform: TestPlatform

beforeAll(async () => {
  engines = await CanaryEngines.start()
  platform = await startPlatform(testTree(engines.tree))
})
afterAll(async () => {
  await platform?.close()
  await engines?.close()
})

describe('canaries', () => {
  it('are sent through every screened route', () => {
    expect([...SCREENED_ROUTES].filter((route) => !WAYS.some((way) => way.route === route))).toEqual([])
  })

  it('are at no engine, whichever route they take', async () => {
    for (const way of WAYS) {
      const { status } = await sendWay(platform.address, way, ACME_KEY)
      expect(status, `${way.route} ${status}`).toBeLessThan(500)
    }
    expect(engines.engine.seen.length).toBeGreaterThan(10)
    expect(engines.passing.seen.length).toBeGreaterThan(5)
    expect(engines.leaked()).toEqual([])
  })
})
