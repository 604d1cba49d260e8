import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { migrate } from '../../src/store/migrate.ts'
import { MIGRATIONS, type Migration } from '../../src/store/migrations.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/**
 * A rolling upgrade as the older gateways see it: the newer version migrates the database under them; they serve and
 * write on, and one that starts again (a crash, a rollback) runs on the newer schema.
 */
const ADMIN_KEY = 'sk-test-admin'
const newest = MIGRATIONS.at(-1)?.step ?? 0
const NEXT: Migration = {
  step: newest + 1,
  name: 'next version',
  usableFrom: newest,
  sql: [
    "alter table registry_entry add column colour text not null default 'blue'",
    "alter table settlement add column shade text not null default 'light'",
    'create table of_the_next_version (id int primary key)',
    '',
  ].join(';\n'),
}

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }
const ask = async ({ baseURL }: TestPlatform): Promise<number> => {
  const response = await postJson(`${baseURL}/chat/completions`, chat)
  await response.text()
  return response.status
}

const addModel = async ({ address }: TestPlatform, name: string, url: string): Promise<number> => {
  const pool = { id: `pool-of-${name}`, model: name, backend: { kind: 'http-openai' }, replicas: [url] }
  const body = { model: { name }, pools: [pool], because: 'a test' }
  const response = await fetch(`${address}/admin/v1/models`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization(ADMIN_KEY) },
    body: JSON.stringify(body),
  })
  await response.text()
  return response.status
}

const modelsOf = async ({ address }: TestPlatform): Promise<string[]> => {
  const response = await fetch(`${address}/admin/v1/models`, { headers: authorization(ADMIN_KEY) })
  return ((await response.json()) as { data: Array<{ name: string }> }).data.map(({ name }) => name)
}

describe.skipIf(missing('postgresql') !== undefined)('the older version', () => {
  it('serves on while the newer one migrates, and comes back on the newer schema', { timeout: 120_000 }, async () => {
    const server = await startPostgres()
    closers.push(() => server.close())
    const upstream = await FakeUpstream.start()
    closers.push(() => upstream.close())
    const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
    const start = async (): Promise<TestPlatform> => {
      const one = await startPlatform(upstreamTree([upstream.url], { store: { url: server.url }, admin }))
      closers.push(() => one.close())
      return one
    }
    const running = await start()
    expect(await ask(running)).toBe(200)
    expect(await addModel(running, 'before', upstream.url)).toBeLessThan(300)

    const newer = new PgDatabase({ clock: new LiveClock(), url: server.url })
    closers.push(() => newer.close())
    const asked = Array.from({ length: 5 }, () => ask(running))
    expect(await migrate(newer, [...MIGRATIONS, NEXT])).toBe(NEXT.step)
    expect(await Promise.all(asked)).toEqual([200, 200, 200, 200, 200])
    expect(await addModel(running, 'after', upstream.url)).toBeLessThan(300)

    const again = await start()
    expect(await ask(again)).toBe(200)
    // A gateway serves before it has read the registry.
    const names = await eventually(
      'the registry is read',
      async () => {
        const all = await modelsOf(again)
        return all.includes('after') ? all : undefined
      },
      30_000,
    )
    expect(names).toEqual(expect.arrayContaining(['before', 'after', MODEL]))
    expect(await newer.query('select distinct colour from registry_entry', [])).toEqual([{ colour: 'blue' }])
  })
})
