import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startEmbedder, startPostgres, startRedis, type TestServer } from '../support/servers.ts'
import {
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/**
 * The database and Redis are stopped in their tracks in the middle of the load (SIGSTOP: connections stay open, nothing
 * answers). No request may fail or wait for them, and all is as before when they come back.
 */
const BUDGET_MS = 300

const why = missing('postgresql', 'redis')

describe.skipIf(why !== undefined)(`on PostgreSQL and Redis${why === undefined ? '' : ` (${why})`}`, () => {
  let postgres: TestServer
  let redis: TestServer
  let platform: TestPlatform
  let embedder: { readonly url: string; close(): Promise<void> }

  beforeAll(async () => {
    ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
    embedder = await startEmbedder()
    const retrieval = {
      redisUrl: redis.url,
      budgetMs: BUDGET_MS,
      embedder: { url: embedder.url, model: 'letters', dimensions: 26 },
    }
    platform = await startPlatform(testTree({ store: { url: postgres.url }, retrieval, logging: { level: 'silent' } }))
    const documents = Array.from({ length: 8 }, (_, i) => ({
      name: `d${i}`,
      text: `Fact ${i}: pump ${i} runs at ${i}0 bar.`,
    }))
    await call('POST', '/vector_stores', { name: 'pumps' })
    await call('POST', '/vector_stores/pumps/documents', { documents })
    await eventually(
      'indexed',
      async () => (await call('GET', '/vector_stores/pumps'))['status'] === 'completed',
      60_000,
    )
  }, 120_000)
  afterAll(async () => {
    postgres?.resume()
    redis?.resume()
    await platform?.close()
    await Promise.all([postgres?.close(), redis?.close(), embedder?.close()])
  })

  async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const headers = { 'content-type': 'application/json', ...authorization() }
    const response = await fetch(platform.baseURL + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    expect(response.status, `${method} ${path}`).toBe(200)
    return (await response.json()) as Record<string, unknown>
  }

  let asked = 0
  /** A new question each time; how its retrieval ended. */
  async function ask(): Promise<string | null> {
    const content = `At how many bar does pump ${asked++ % 8} run? (${asked})`
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      model: MODEL,
      messages: [{ role: 'user', content }],
      max_tokens: 4,
      stream: true,
      spillway: { retrieval: { corpus: 'pumps', top_k: 2 } },
    })
    expect(response.status).toBe(200)
    await response.text()
    return response.headers.get('x-spillway-retrieval')
  }

  async function load(count: number): Promise<ReadonlyArray<string | null>> {
    const outcomes = []
    for (let i = 0; i < count; i += 4) outcomes.push(...(await Promise.all([ask(), ask(), ask(), ask()])))
    return outcomes
  }

  it('nobody waits for a stopped database and a stopped Redis, and they are used again by themselves', async () => {
    await eventually('passages are found in time', async () => (await load(8)).includes('fresh'))
    postgres.pause()
    redis.pause()
    // All are answered while nothing answers us; that none waits longer than its budget is told in virtual time.
    const during = await load(24)
    expect(during.filter((outcome) => !['stale', 'skipped', 'failed', 'cached'].includes(outcome!))).toEqual([])
    // Now and then one question is let through to try.
    const isOpen = async () => (await platform.metric('spillway_breaker_open', { what: 'store' })) === 1
    await eventually('the breaker is open', isOpen)
    postgres.resume()
    redis.resume()
    // Not by one lucky question: several are answered as before.
    let fresh = 0
    await eventually('fresh again', async () => {
      fresh += (await load(4)).filter((outcome) => outcome === 'fresh').length
      return fresh >= 8
    })
  }, 60_000)

  it('nothing of one tenant reaches another, though both use the same servers', async () => {
    const response = await postJson(
      `${platform.baseURL}/chat/completions`,
      {
        model: MODEL,
        messages: [{ role: 'user', content: 'At how many bar does pump 3 run?' }],
        max_tokens: 60,
        spillway: { retrieval: { corpus: 'pumps', include_passages: true } },
      },
      authorization(GLOBEX_KEY),
    )
    expect(await response.text()).not.toContain('30 bar')
  })
})
