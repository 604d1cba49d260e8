import { afterEach, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import { authorization, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Two gateways whose database comes back empty: what was added at run time is served without a break. */
const ADMIN_KEY = 'sk-test-admin'
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(url: string): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const platform = await startPlatform(testTree({ admin, store: { url } }))
  closers.push(() => platform.close())
  return platform
}

async function chat({ baseURL }: TestPlatform): Promise<number> {
  const messages = [{ role: 'user', content: 'Hello?' }]
  const response = await postJson(`${baseURL}/chat/completions`, { model: 'one', messages, max_tokens: 4 })
  await response.text()
  return response.status
}

async function changes({ address }: TestPlatform): Promise<ReadonlyArray<{ by: string; name: string }>> {
  const response = await fetch(`${address}/admin/v1/changes`, { headers: authorization(ADMIN_KEY) })
  return ((await response.json()) as { data: ReadonlyArray<{ by: string; name: string }> }).data
}

const why = missing('postgresql')
it.skipIf(why !== undefined)('no model is lost, and the database has it again', { timeout: 120_000 }, async () => {
  const postgres = await startPostgres()
  closers.push(() => postgres.close())
  const engine = await FakeUpstream.start()
  closers.push(() => engine.close())
  const both = [await start(postgres.url), await start(postgres.url)] as const
  const pools = [{ id: 'one-pool', backend: { kind: 'http-openai' }, replicas: [engine.url] }]
  const added = await fetch(`${both[0].address}/admin/v1/models`, {
    method: 'POST',
    headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
    body: JSON.stringify({ model: { name: 'one' }, pools, because: 'a test' }),
  })
  expect(added.status).toBe(200)
  for (const platform of both) await eventually('it is served', async () => (await chat(platform)) === 200)

  const database = new PgDatabase({ clock: new LiveClock(), url: postgres.url })
  closers.push(() => database.close())
  await database.run('drop schema public cascade; create schema public;')
  const isWrittenBack = async (platform: TestPlatform): Promise<boolean> => {
    expect(await chat(platform)).toBe(200)
    return (await changes(platform)).length === 2
  }
  for (const platform of both) await eventually('it is written back', () => isWrittenBack(platform))
  expect((await changes(both[1])).map(({ by, name }) => `${by}: ${name}`).sort()).toEqual([
    'registry: one',
    'registry: one-pool',
  ])
})
