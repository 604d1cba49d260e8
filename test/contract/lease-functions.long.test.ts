import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { missing } from '../support/installed.ts'
import { compareTwins } from '../support/lease-twins.ts'
import { startRedis, type TestServer } from '../support/servers.ts'

/** The functions in Redis against their twin in `policy/sharing`. A tenth of it is in the quick suite. */

const why = missing('redis')
let redis: TestServer | undefined

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterAll(() => redis?.close())

describe('the functions in Redis', () => {
  it('answer as their twin does, in 100,000 random calls', { timeout: 600_000 }, async ({ skip }) => {
    skip(redis === undefined, why)
    const run = await compareTwins(redis!.url, 2, { sequences: 1_000, length: 110 })
    expect(run.callCount).toBeGreaterThanOrEqual(100_000)
    // A comparison without these would prove little.
    for (const drawn of [run.wipeCount, run.lateCount, run.lostCount]) expect(drawn).toBeGreaterThan(100)
  })
})
