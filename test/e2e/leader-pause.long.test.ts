import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { eventually } from '../support/eventually.ts'
import { askAdmin, saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { type LedGateway, LedPair } from '../support/led-pair.ts'
import { startPostgres } from '../support/servers.ts'
import { MODEL, postJson } from '../support/start-platform.ts'

/** The leader of two gateways is paused beyond its term. It is killed in `leader-scales.test.ts`, and alone in the long sibling. */
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
}, 60_000)

/** Sessions at one gateway until `isDone`. */
async function serveUntil({ address }: LedGateway, isDone: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 5_000 && !(await isDone()); i += 4) {
    const asked = Array.from({ length: 4 }, async (_, j) => {
      const body = { model: MODEL, messages: [{ role: 'user', content: 'What is a weir?' }], max_tokens: 4 }
      const response = await postJson(`${address}/v1/chat/completions`, body, { 'x-session-id': `s${i + j}` })
      await response.text()
    })
    await Promise.all(asked)
  }
}

interface Shown {
  readonly phase: string
  readonly percent: number
}

const shown = ({ address }: LedGateway): Promise<Shown> => askAdmin<Shown>(address, `GET rollouts/${MODEL}`)

const why = missing('postgresql')
describe.skipIf(why !== undefined)('a leader', () => {
  it('that is paused beyond its term decides nothing afterwards, and no step is taken twice', {
    timeout: 300_000,
  }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const pair = new LedPair()
    closers.push(() => pair.end())
    const [leader, other] = await pair.start(postgres.url)
    // Evidence of both, which would let either of them decide.
    await serveUntil(leader, async () => (await shown(leader)).percent >= 60)
    leader.child.signal('SIGSTOP')
    closers.push(() => leader.child.signal('SIGCONT'))
    await eventually(
      'the other one leads',
      async () => (await saysOfLeader(other.address)) === 'this gateway leads',
      60_000,
    )
    await serveUntil(other, async () => (await shown(other)).phase === 'promoted')
    leader.child.signal('SIGCONT')
    await eventually('it follows', async () => (await saysOfLeader(leader.address)) === 'another gateway leads', 60_000)
    await eventually('it has taken up the step', async () => (await shown(leader)).phase === 'promoted', 60_000)
    const database = new PgDatabase({ clock: new LiveClock(), url: postgres.url })
    closers.push(() => database.close())
    const changes = await new SqlRegistryStore(database).history({ limit: 100 })
    const steps = changes.map(({ by, after }) => {
      const { state } = after as unknown as { state: { phase: string; step: number } }
      return `${by} ${state.phase} ${state.step}`
    })
    expect(steps.toReversed()).toEqual(['judge canary 1', 'judge promoted 1'])
  })
})
