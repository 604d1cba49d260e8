import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/servers.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** What a client and an administrator are told when the store is away, lost or deleted: 503 and a reason, no place. */

const ADMIN_KEY = 'sk-test-admin'
const open: Array<{ close(): Promise<void> }> = []
const folders: string[] = []
afterAll(async () => {
  for (const one of open) await one.close()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

async function start(store: Record<string, unknown>, retrieval: Record<string, unknown> = {}): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ops', hash: hashKey(ADMIN_KEY) }] }
  const platform = await startPlatform(testTree({ store, admin, retrieval }))
  open.push(platform)
  return platform
}

const addCorpus = (platform: TestPlatform, name: string) => postJson(`${platform.baseURL}/vector_stores`, { name })
const addModel = (platform: TestPlatform, name: string) =>
  postJson(
    `${platform.address}/admin/v1/models`,
    { model: { name }, because: 'a test' },
    { authorization: `Bearer ${ADMIN_KEY}` },
  )

const PLACES = /127\.0\.0\.1|localhost|\/tmp|spillway-lost|someone|ECONNREFUSED \d/

describe('a store that is away', () => {
  it('is a 503 without its address, for tenants and administrators; the operator reads the address', async () => {
    const port = await freePort()
    const platform = await start({ url: `postgres://someone:secret@127.0.0.1:${port}/name` })
    for (const asked of [await addCorpus(platform, 'c'), await addModel(platform, 'm')]) {
      expect(asked.status).toBe(503)
      const text = await asked.text()
      expect(text).toContain('cannot be reached')
      expect(text).not.toMatch(PLACES)
    }
    expect(platform.printed).toContain(`127.0.0.1:${port}`)
    expect(platform.printed).not.toContain('secret')
  }, 60_000)

  it('is named without its address in a chat answer, and so is an embedder', async () => {
    const port = await freePort()
    const embedder = { url: `http://127.0.0.1:${port}/v1`, model: 'letters', dimensions: 26, batchWaitMs: 0 }
    const platform = await start({}, { embedder, budgetMs: 2_000 })
    expect((await addCorpus(platform, 'pumps')).status).toBe(200)
    const documents = [{ name: 'd', text: 'Pump 1 runs at 10 bar.' }]
    await postJson(`${platform.baseURL}/vector_stores/pumps/documents`, { documents })
    await eventually('the words are there', async () => {
      const response = await fetch(`${platform.baseURL}/vector_stores/pumps`, { headers: authorization() })
      return ((await response.json()) as { spillway: { passages: number } }).spillway.passages > 0
    })
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      model: MODEL,
      messages: [{ role: 'user', content: 'At how many bar does the pump run?' }],
      max_tokens: 4,
      spillway: { retrieval: { corpus: 'pumps' } },
    })
    const text = await response.text()
    expect(text).toContain('the embedder failed')
    expect(text).not.toMatch(PLACES)
  }, 60_000)
})

describe('an embedded folder that is deleted while the server runs', () => {
  it('is a 503 with a reason and no path, or a new store; never a 500', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-lost-'))
    folders.push(folder)
    const path = join(folder, 'store')
    const platform = await start({ path })
    expect((await addCorpus(platform, 'before')).status).toBe(200)
    for (const add of [addCorpus, addModel]) {
      rmSync(path, { recursive: true, force: true })
      const statuses: number[] = []
      await eventually(
        'the store is back',
        async () => {
          const response = await add(platform, `after-${statuses.length}`)
          statuses.push(response.status)
          expect(await response.text()).not.toMatch(PLACES)
          return response.status < 300
        },
        30_000,
      )
      expect(statuses.slice(0, -1).filter((status) => status !== 503)).toEqual([])
    }
    expect(platform.printed).toContain(`the folder ${path} was deleted`)
  }, 60_000)
})
