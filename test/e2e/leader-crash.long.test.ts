import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { LedPair } from '../support/led-pair.ts'
import { startPostgres } from '../support/servers.ts'

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
}, 60_000)

const why = missing('postgresql')
describe.skipIf(why !== undefined)('a leader', () => {
  it('that is killed is followed by the other gateway', { timeout: 240_000 }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const pair = new LedPair()
    closers.push(() => pair.end())
    const [leader, other] = await pair.start(postgres.url)
    leader.child.signal('SIGKILL')
    await leader.child.exited(60_000)
    await eventually(
      'the other one leads',
      async () => (await saysOfLeader(other.address)) === 'this gateway leads',
      60_000,
    )
    expect(await saysOfLeader(other.address)).toBe('this gateway leads')
  })
})
