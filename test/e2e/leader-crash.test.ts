import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { askAdmin, pairTree, saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import { MODEL, postJson } from '../support/start-platform.ts'

/** Two gateways as processes of their own, on one PostgreSQL server: the leader is killed, or paused beyond its term. */
const folder = new TestFolder()
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
}, 60_000)

interface Gateway {
  readonly child: Child
  readonly address: string
}

async function start(url: string): Promise<Gateway> {
  const rollout = { stable: '1', canary: '2', steps: [40, 60], dwellMs: 1_000, judge: { pairsMin: 10 } }
  const models = [{ name: MODEL, releases: [{ version: '1' }, { version: '2' }], rollout }]
  const pools = ['1', '2'].map((release) => ({
    id: `p${release}`,
    model: MODEL,
    release,
    backend: { kind: 'simulated', profile: 'h100-llama-8b' },
  }))
  const config = folder.write('spillway.yaml', pairTree(url, { models, pools }))
  const child = new Child({ env: { SPILLWAY_CONFIG: config } })
  closers.push(() => child.end())
  const address = await child.address(120_000)
  return { child, address }
}

/** The leader first. */
async function startPair(url: string): Promise<readonly [Gateway, Gateway]> {
  const first = await start(url)
  await eventually('it leads', async () => (await saysOfLeader(first.address)) === 'this gateway leads', 60_000)
  const second = await start(url)
  await eventually('it follows', async () => (await saysOfLeader(second.address)) === 'another gateway leads', 60_000)
  return [first, second]
}

/** Sessions at one gateway until `isDone`. */
async function serveUntil({ address }: Gateway, isDone: () => Promise<boolean>): Promise<void> {
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

const shown = ({ address }: Gateway): Promise<Shown> => askAdmin<Shown>(address, `GET rollouts/${MODEL}`)

const why = missing('postgresql')
describe.skipIf(why !== undefined)('a leader', () => {
  it('that is killed is followed by the other gateway', { timeout: 240_000 }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const [leader, other] = await startPair(postgres.url)
    leader.child.signal('SIGKILL')
    await leader.child.exited(60_000)
    await eventually(
      'the other one leads',
      async () => (await saysOfLeader(other.address)) === 'this gateway leads',
      60_000,
    )
    expect(await saysOfLeader(other.address)).toBe('this gateway leads')
  })

  it('that is paused beyond its term decides nothing afterwards, and no step is taken twice', {
    timeout: 300_000,
  }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const [leader, other] = await startPair(postgres.url)
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
