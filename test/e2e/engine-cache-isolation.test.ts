import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InsideEngine } from '../support/engine-process.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/**
 * Law L13 at engines over HTTP: a prompt that one tenant has sent is no faster for another, because the engine does not find
 * it. The engine counts what it found (`cached_tokens`); it speaks as vLLM does.
 */
const TEXT = 'A spillway lets water pass a dam. It is sized for the largest flood. Most are made of concrete. '

/** The same rule holds for simulated engines of the gateway's own process. */
const SIMULATED = { kind: 'simulated', profile: 'h100-llama-8b' }

let engine: InsideEngine
beforeAll(async () => {
  engine = await InsideEngine.start('--profile', 'h100-llama-8b', '--model', MODEL)
})
afterAll(() => engine?.stop())

type Cached = (key: string, body?: object) => Promise<number>

/** A platform over the engine. `ask` says how much of this test's own prompt the engine had computed before. */
async function over(
  name: string,
  tenant: object,
  pool: object,
  test: (cached: Cached) => Promise<void>,
): Promise<void> {
  const tree = upstreamTree([`${engine.url}/v1`])
  const tenants = (tree['tenants'] as object[]).map((one) => ({ ...one, org: 'group', ...tenant }))
  const [first] = tree['pools'] as [{ backend: object }]
  const pools =
    pool === SIMULATED ? [{ model: MODEL, backend: pool }] : [{ ...first, backend: { ...first.backend, ...pool } }]
  const platform = await startPlatform({ ...tree, tenants, pools } as Tree)
  const messages = [{ role: 'user', content: `${name}. ${TEXT.repeat(20)}` }]
  try {
    await test(async (key, body = {}) => {
      const answer = await fetch(`${platform.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorization(key) },
        body: JSON.stringify({ model: MODEL, messages, max_tokens: 2, ...body }),
      })
      const { usage } = (await answer.json()) as { usage: { prompt_tokens_details?: { cached_tokens?: number } } }
      return usage.prompt_tokens_details?.cached_tokens ?? 0
    })
  } finally {
    await platform.close()
  }
}

describe('a prompt in the cache of an engine', () => {
  it.each([
    ['over HTTP', {}],
    ['in this process', SIMULATED],
  ])('%s is found by the tenant that sent it, and by no other', (name, pool) =>
    over(name, {}, pool, async (cached) => {
      expect(await cached(ACME_KEY)).toBe(0)
      expect(await cached(ACME_KEY)).toBeGreaterThan(300)
      expect(await cached(GLOBEX_KEY)).toBe(0)
      expect(await cached(GLOBEX_KEY)).toBeGreaterThan(300)
    }),
  )

  it('is found by tenants of one org that share it', () =>
    over('org', { prefixCache: 'org' }, {}, async (cached) => {
      expect(await cached(ACME_KEY)).toBe(0)
      expect(await cached(GLOBEX_KEY)).toBeGreaterThan(300)
    }))

  it.each([
    ['tenants share with all', { prefixCache: 'shared' }, {}],
    ['they share with all in this process', { prefixCache: 'shared' }, SIMULATED],
    ['the engine is told no salts', {}, { cacheSalt: 'never' }],
  ])('is found by all where %s', (name, tenant, pool) =>
    over(name, tenant, pool, async (cached) => {
      expect(await cached(ACME_KEY)).toBe(0)
      expect(await cached(GLOBEX_KEY)).toBeGreaterThan(300)
    }),
  )

  it.each([
    ['over HTTP', {}],
    ['in this process', SIMULATED],
  ])('%s is not found by a client of another tenant that names the same salt', (name, pool) =>
    over(`named ${name}`, {}, pool, async (cached) => {
      expect(await cached(ACME_KEY, { cache_salt: 'ours' })).toBe(0)
      expect(await cached(ACME_KEY, { cache_salt: 'ours' })).toBeGreaterThan(300)
      expect(await cached(GLOBEX_KEY, { cache_salt: 'ours' })).toBe(0)
      expect(await cached(ACME_KEY, { cache_salt: 'other' })).toBe(0)
      expect(await cached(ACME_KEY)).toBe(0)
    }),
  )
})
