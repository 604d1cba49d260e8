import { afterEach, describe, expect, it } from 'vitest'
import { missing } from '../support/installed.ts'
import { ROTATIONS, rotateUnderLoad, startForRotation } from '../support/key-rotation.ts'
import { startPostgres } from '../support/servers.ts'

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const why = missing('postgresql')
describe.skipIf(why !== undefined)('a rotation with a grace', () => {
  it('costs clients not one answer at a second gateway on the same PostgreSQL', { timeout: 180_000 }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const gateways = [await startForRotation({ url: postgres.url }), await startForRotation({ url: postgres.url })]
    closers.push(...gateways.map((gateway) => () => gateway.close()))
    const { statuses, answered } = await rotateUnderLoad(gateways)
    expect([...statuses.keys()]).toEqual([200])
    expect(answered.size).toBe(ROTATIONS + 1)
  })
})
