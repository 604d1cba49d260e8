import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { askAdmin, pairTree, saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
} from '../support/start-platform.ts'

/** Two gateways on one PostgreSQL server are one cell. */
const why = missing('postgresql')
describe.skipIf(why !== undefined)('two gateways on one database', () => {
  let postgres: TestServer
  let [here, there] = [] as unknown as [TestPlatform, TestPlatform]
  beforeAll(async () => {
    postgres = await startPostgres()
    const releases = [{ version: '1' }, { version: '2' }]
    const pool = (release: string) => ({
      id: `p${release}`,
      model: MODEL,
      release,
      backend: { kind: 'simulated', profile: 'h100-llama-8b' },
    })
    const tree = pairTree(postgres.url, { models: [{ name: MODEL, releases }], pools: [pool('1'), pool('2')] })
    here = await startPlatform(tree)
    there = await startPlatform(tree)
  }, 120_000)
  afterAll(async () => {
    await there.close()
    await here.close().catch(() => {})
    await postgres.close()
  }, 60_000)

  const chat = (platform: TestPlatform, key?: string) =>
    postJson(
      `${platform.baseURL}/chat/completions`,
      { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }], max_tokens: 4 },
      key === undefined ? {} : authorization(key),
    )

  it('have one leader, and both say so', { timeout: 60_000 }, async () => {
    const said = await eventually('both know who leads', async () => {
      const both = [await saysOfLeader(here.address), await saysOfLeader(there.address)]
      return both.every((text) => text.endsWith('gateway leads')) && both
    })
    expect(said.toSorted()).toEqual(['another gateway leads', 'this gateway leads'])
    await eventually('one gauge of two says so', async () => {
      const leads = await Promise.all([here, there].map((one) => one.metric('spillway_leader', { duty: 'duties' })))
      return leads.reduce<number>((sum, value) => sum + (value ?? 0), 0) === 1
    })
  })

  it('know a new key, and refuse it when it is removed, whichever was told', { timeout: 60_000 }, async () => {
    await askAdmin(here.address, 'POST orgs', { id: 'initech', slos: ['steady'] })
    await askAdmin(there.address, 'POST tenants', { id: 'store', orgId: 'initech' })
    const { secret } = await askAdmin<{ secret: string }>(here.address, 'POST keys', { id: 'web', tenantId: 'store' })
    const status = async (platform: TestPlatform): Promise<number> => {
      const response = await fetch(`${platform.baseURL}/models`, { headers: authorization(secret) })
      await response.text()
      return response.status
    }
    await eventually('the other one knows it', async () => (await status(there)) === 200)
    await askAdmin(there.address, 'DELETE keys/web', {})
    await eventually('the first one refuses it', async () => (await status(here)) === 401)
    expect([await status(here), await status(there)]).toEqual([401, 401])
  })

  it('drain a replica that one of them was told to drain, and use it again', { timeout: 60_000 }, async () => {
    const id = here.platform.pools[0]!.replicas[0]!.id
    const health = (platform: TestPlatform) => platform.platform.policies.health.kindOf(id)
    await askAdmin(here.address, `POST replicas/${id}`, { state: 'draining' })
    expect(health(here)).toBe('draining')
    await eventually('it drains at the other one', () => health(there) === 'draining')
    await askAdmin(there.address, `POST replicas/${id}`, { state: 'ready' })
    expect(health(there)).not.toBe('draining')
    await eventually('it is used again', () => health(here) !== 'draining')
  })

  it('explain a request that the other one served, to whom it belongs', { timeout: 60_000 }, async () => {
    const response = await chat(here)
    const id = response.headers.get('x-request-id') ?? ''
    expect(response.status).toBe(200)
    await response.text()
    await here.settled(id)
    const explain = (key: string) => fetch(`${there.address}/spillway/requests/${id}`, { headers: authorization(key) })
    await eventually('they know of each other', async () => (await explain(ACME_KEY)).status === 200)
    const own = (await (await explain(ACME_KEY)).json()) as { id: string; entries: Array<{ kind: string }> }
    expect(own.id).toBe(id)
    expect(own.entries.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['arrived', 'admitted', 'granted', 'settled']),
    )
    expect((await explain(GLOBEX_KEY)).status).toBe(404)
    const unknown = await fetch(`${there.address}/spillway/requests/req_nobody`, { headers: authorization(ACME_KEY) })
    expect(unknown.status).toBe(404)
  })

  it('follow a rollout that was begun at the other one, with the same release for each session', {
    timeout: 60_000,
  }, async () => {
    await askAdmin(there.address, `POST rollouts/${MODEL}`, { command: 'start', release: '2' })
    const view = (platform: TestPlatform) => platform.platform.policies.rollouts.get(MODEL)
    await eventually('it is followed', () => view(here)?.view().phase === 'canary')
    expect(view(here)?.memory()).toEqual(view(there)?.memory())
    const chosen = (platform: TestPlatform) =>
      Array.from({ length: 200 }, (_, i) => {
        const ask = { tenantId: 'acme', keyId: 'acme-1', session: `s${i}`, headers: {} }
        return view(platform)?.choose(ask).release
      })
    expect(chosen(here)).toEqual(chosen(there))
    expect(new Set(chosen(here)).size).toBe(2)
    const percent = () => here.metric('spillway_rollout_percent', { model: MODEL, release: `${MODEL}@2` })
    await eventually('the gauge follows', async () => (await percent()) === 5)
    await askAdmin(here.address, `POST rollouts/${MODEL}`, { command: 'roll-back' })
    await eventually('it is followed back', () => view(there)?.view().phase === 'rolled-back')
  })

  it('are led by the other one when the leader ends', { timeout: 60_000 }, async () => {
    const isHere = (await saysOfLeader(here.address)) === 'this gateway leads'
    const [leader, other] = isHere ? [here, there] : [there, here]
    ;[here, there] = [leader, other]
    await leader.close()
    await eventually('the other one leads', async () => (await saysOfLeader(other.address)) === 'this gateway leads')
    expect(await saysOfLeader(other.address)).toBe('this gateway leads')
  })
})
