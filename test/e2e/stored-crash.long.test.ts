import { afterAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Stored answers when a process dies, when a tenant leaves the file, and when the store is away. */

const ADMIN_KEY = 'sk-test-admin'
const CANARY = 'canary-51c9'
const folder = new TestFolder()
const children: Child[] = []

afterAll(async () => {
  for (const child of children) await child.end()
  folder.remove()
})

const tenant = (id: string, key: string) => ({
  id,
  slo: 'patient',
  storing: {},
  keys: [{ id: `${id}-1`, hash: hashKey(key) }],
})
const ACME = tenant('acme', ACME_KEY)
const GLOBEX = tenant('globex', GLOBEX_KEY)

const treeOf = (tenants: readonly object[], store: object = { path: `${folder.path}/data` }) =>
  testTree({ tenants, store, admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }, logging: { level: 'info' } })

async function start(): Promise<{ child: Child; base: string }> {
  const child = new Child({ env: { SPILLWAY_CONFIG: folder.write('spillway.yaml', treeOf([ACME, GLOBEX])) } })
  children.push(child)
  const base = await child.address(60_000)
  await eventually('it is ready', async () => (await fetch(`${base}/health/ready`)).ok, 60_000)
  return { child, base }
}

interface Completion {
  readonly id: string
  readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

const PATH = '/v1/chat/completions'

async function ask(base: string, n: number, key = ACME_KEY): Promise<Completion> {
  const body = { model: MODEL, messages: [{ role: 'user', content: `${CANARY} ${n}` }], max_tokens: 6, store: true }
  const response = await postJson(base + PATH, body, authorization(key))
  expect(response.status).toBe(200)
  return (await response.json()) as Completion
}

const find = (base: string, id: string, key = ACME_KEY): Promise<Response> =>
  fetch(`${base}${PATH}/${id}`, { headers: authorization(key) })

async function idsOf(base: string, key: string): Promise<string[]> {
  const response = await fetch(`${base}${PATH}?limit=100`, { headers: authorization(key) })
  return ((await response.json()) as { data: Completion[] }).data.map(({ id }) => id)
}

async function reload(base: string, tenants: readonly object[]): Promise<void> {
  folder.write('spillway.yaml', treeOf(tenants))
  const answer = await postJson(`${base}/admin/v1/reload`, { because: 'a test' }, authorization(ADMIN_KEY))
  expect(answer.status).toBe(200)
}

describe('stored answers', { timeout: 240_000 }, () => {
  it('that were seen once survive a kill, the others are whole or unknown, and no log has their text', async () => {
    const first = await start()
    const seen: Completion[] = []
    for (let n = 0; n < 5; n++) {
      const answer = await ask(first.base, n)
      expect((await find(first.base, answer.id)).status).toBe(200)
      seen.push(answer)
    }
    const late = await Promise.all([5, 6, 7, 8].map((n) => ask(first.base, n)))
    first.child.signal('SIGKILL')
    await first.child.exited()

    const second = await start()
    for (const { id, choices } of seen) {
      const response = await find(second.base, id)
      expect(response.status).toBe(200)
      expect(((await response.json()) as Completion).choices).toEqual(choices)
    }
    for (const { id, choices } of late) {
      const response = await find(second.base, id)
      if (response.status !== 404) expect(((await response.json()) as Completion).choices).toEqual(choices)
    }
    for (const { child } of [first, second]) {
      expect(child.out).toContain('listening')
      for (const said of [CANARY, seen[0]!.choices[0]!.message.content])
        expect(child.out + child.err).not.toContain(said)
    }
  })

  it('that wait to be written when the process is stopped are there in the next one', async () => {
    await children.at(-1)?.end()
    const first = await start()
    const answers = await Promise.all([1, 2, 3].map((n) => ask(first.base, n, GLOBEX_KEY)))
    first.child.signal('SIGTERM')
    await first.child.exited(60_000)
    const { base } = await start()
    const ids = await idsOf(base, GLOBEX_KEY)
    expect(ids.toSorted()).toEqual(answers.map(({ id }) => id).toSorted())
  })

  it('of a tenant that leaves the file are erased, and its name begins anew', async () => {
    await children.at(-1)?.end()
    const { base } = await start()
    const { id } = await ask(base, 1, GLOBEX_KEY)
    expect(await idsOf(base, GLOBEX_KEY)).toContain(id)
    const others = await idsOf(base, ACME_KEY)
    await reload(base, [ACME])
    expect((await find(base, id, GLOBEX_KEY)).status).toBe(401)
    await reload(base, [ACME, GLOBEX])
    expect(await idsOf(base, GLOBEX_KEY)).toEqual([])
    expect(await idsOf(base, ACME_KEY)).toEqual(others)
  })

  it('are not promised while the store is away: answers are served and say so', async () => {
    const url = `postgres://nobody@127.0.0.1:${await freePort()}/none`
    const platform = await startPlatform({ ...treeOf([ACME], { url }), logging: { level: 'silent' } })
    const wish = { model: MODEL, messages: [{ role: 'user', content: CANARY }], max_tokens: 4, store: true }
    try {
      const told = await eventually(
        'the store is known to be away',
        async () => {
          const response = await postJson(`${platform.address}${PATH}`, wish)
          expect(response.status).toBe(200)
          return response.headers.get('x-spillway-not-stored') ?? undefined
        },
        60_000,
      )
      expect(told).toBe('store-away')
      const read = await find(platform.address, 'chatcmpl-1')
      expect([read.status, read.headers.has('retry-after')]).toEqual([503, true])
      expect(((await read.json()) as { error: { code: string } }).error.code).toBe('archive_unavailable')
    } finally {
      await platform.close()
    }
    expect(platform.printed).toContain('not stored meanwhile')
    expect(platform.printed).not.toContain(CANARY)
    const lost = platform.entries.filter((entry) => entry.kind === 'archive-written' && entry.outcome === 'store-away')
    expect(lost.length).toBeGreaterThan(0)
  })
})
