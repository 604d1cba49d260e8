import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import type { ConsoleView } from '../../src/console/console-view.ts'
import { eventually } from '../support/eventually.ts'
import { PAIR_ADMIN_KEY, pairTree } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, startRedis } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from '../support/start-platform.ts'

/** The console of one gateway shows the cell, and its sessions are known to every gateway. */
interface Shared {
  readonly name: string
  readonly why: string | undefined
  readonly open: () => Promise<{ readonly tree: Tree; readonly close: () => Promise<unknown> }>
}

const admin = { keys: [{ id: 'ada', hash: hashKey(PAIR_ADMIN_KEY) }] }

const WAYS: readonly Shared[] = [
  {
    name: 'one PostgreSQL',
    why: missing('postgresql'),
    open: async () => {
      const postgres = await startPostgres()
      return { tree: pairTree(postgres.url), close: () => postgres.close() }
    },
  },
  {
    name: 'one Redis',
    why: missing('redis'),
    open: async () => {
      const redis = await startRedis()
      const tree = testTree({ admin, sharing: { redis: { url: redis.url }, name: 'console-cell' } })
      return { tree, close: () => redis.kill() }
    },
  },
]

const chat = (platform: TestPlatform, key: string, model = MODEL): Promise<Response> =>
  postJson(
    `${platform.baseURL}/chat/completions`,
    { model, messages: [{ role: 'user', content: 'Hello?' }], max_tokens: 2 },
    authorization(key),
  )

async function viewAt({ address }: TestPlatform, key = PAIR_ADMIN_KEY): Promise<ConsoleView> {
  const response = await fetch(`${address}/console/view`, { headers: authorization(key) })
  return (await response.json()) as ConsoleView
}

const completed = ({ columns, total }: ConsoleView): number => total[columns.indexOf('completed')] ?? 0

describe.each(WAYS)('the console of two gateways on $name', ({ why, open }) => {
  if (why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let shared: Awaited<ReturnType<Shared['open']>>
  let [here, there] = [] as unknown as [TestPlatform, TestPlatform]
  beforeAll(async () => {
    shared = await open()
    here = await startPlatform(shared.tree)
    there = await startPlatform(shared.tree)
  }, 120_000)
  afterAll(async () => {
    await there.close().catch(() => {})
    await here.close()
    await shared.close()
  }, 60_000)

  it('is one session at both, which no other cell knows', { timeout: 60_000 }, async () => {
    const cookie = await eventually('both have the secret', async () => {
      const begun = await fetch(`${here.address}/console/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ key: PAIR_ADMIN_KEY }),
      })
      const [pair = ''] = (begun.headers.get('set-cookie') ?? '').split(';')
      const known = await fetch(`${there.address}/console/session`, { headers: { cookie: pair } })
      return known.ok && pair
    })
    expect(cookie).toMatch(/^spillway_console=/)
    const alone = await startPlatform(testTree({ admin }))
    expect((await fetch(`${alone.address}/console/session`, { headers: { cookie } })).status).toBe(401)
    await alone.close()
  })

  it('adds up what both served, and tells refusals of both', { timeout: 60_000 }, async () => {
    await eventually('each hears the other', async () => {
      const both = [await viewAt(here), await viewAt(there)]
      return both.every(({ gateways }) => gateways.heard === 2 && gateways.of === 2)
    })
    for (const [platform, key, times] of [
      [here, ACME_KEY, 3],
      [there, GLOBEX_KEY, 2],
      [there, ACME_KEY, 1],
    ] as const)
      for (let i = 0; i < times; i++) expect((await chat(platform, key)).status).toBe(200)
    const late = await postJson(
      `${there.baseURL}/chat/completions`,
      { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], spillway: { deadline_ms: 1 } },
      authorization(GLOBEX_KEY),
    )
    expect(late.status).toBe(400)
    const settled = [here, there].flatMap(({ entries }) =>
      entries.filter((entry) => entry.kind === 'settled' && entry.outcome === 'completed'),
    )
    for (const platform of [here, there]) {
      const view = await eventually('it shows all', async () => {
        const seen = await viewAt(platform)
        return completed(seen) === settled.length && seen.events.some(({ tenant }) => tenant === 'globex') && seen
      })
      const [acme, globex] = ['acme', 'globex'].map((name) => view.tenants.find((party) => party.name === name))
      expect(acme?.counts[view.columns.indexOf('completed')]).toBe(4)
      expect(globex?.counts[view.columns.indexOf('completed')]).toBe(2)
    }
    const own = await eventually('a tenant sees itself at both', async () => {
      const seen = await viewAt(here, ACME_KEY)
      return completed(seen) === 4 && seen
    })
    expect(JSON.stringify(own)).not.toContain('globex')
  })

  it('has the hour of both', { timeout: 60_000 }, async () => {
    const answered = await eventually('the hour adds up', async () => {
      const response = await fetch(`${here.address}/console/history`, { headers: authorization(PAIR_ADMIN_KEY) })
      const seconds = (await response.json()) as number[][]
      const sum = seconds.reduce((total, second) => total + (second[2] ?? 0), 0)
      return sum >= 6 && sum
    })
    expect(answered).toBe(6)
  })

  it('says that a gateway has gone', { timeout: 60_000 }, async () => {
    await there.close()
    const gone = await eventually(
      'it is heard no more',
      async () => {
        const { gateways } = await viewAt(here)
        return gateways.heard === 1 && gateways
      },
      30_000,
    )
    expect(gone.of).toBeLessThanOrEqual(2)
  })
})
