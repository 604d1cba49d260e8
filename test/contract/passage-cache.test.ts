import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Breaker } from '../../src/base/breaker.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Passage } from '../../src/domain/corpus.ts'
import { MemoryPassageCache } from '../../src/retrieval/caches/memory-passage-cache.ts'
import type { CachedPassages, CacheKey, PassageCache } from '../../src/retrieval/caches/passage-cache.ts'
import { RedisPassageCache } from '../../src/retrieval/caches/redis-passage-cache.ts'
import { TieredPassageCache } from '../../src/retrieval/caches/tiered-passage-cache.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'

/** What every cache of passages must do: in memory, in a real Redis, and in both. */

const clock = new LiveClock()
const why = missing('redis')
let redis: TestServer | undefined

/** A busy test machine may take longer than the ten milliseconds that are meant for a quiet one. */
const makeRedis = (breaker = new Breaker(), getUsMax = 500_000): RedisPassageCache =>
  new RedisPassageCache({ clock, url: redis!.url, ttlS: 60, breaker, usMax: getUsMax })

const KINDS: ReadonlyArray<{ name: string; needsRedis: boolean; open: () => PassageCache }> = [
  { name: 'memory', needsRedis: false, open: () => new MemoryPassageCache() },
  { name: 'Redis', needsRedis: true, open: () => makeRedis() },
  {
    name: 'memory before Redis',
    needsRedis: true,
    open: () => new TieredPassageCache(new MemoryPassageCache(), makeRedis()),
  },
]

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterAll(() => redis?.close())

const passage = (text: string): Passage => ({
  id: '1',
  documentId: 'd',
  source: 'd.txt',
  position: 0,
  text,
  tokens: 3,
  score: 1,
  attributes: { a: 1 },
})

const entry = (text: string): CachedPassages => ({ version: 3, deletions: 1, storedAt: 42, passages: [passage(text)] })
const key: CacheKey = { tenantId: 'acme', corpusId: 'vs_1', query: 'Where?', passagesMax: 5 }

describe.each(KINDS)('a passage cache in $name', ({ needsRedis, open }) => {
  if (needsRedis && why !== undefined) {
    it.skip(why, () => {})
    return
  }

  it('gives back what was put in, under exactly its key', async () => {
    const cache = open()
    // The first question to Redis may be the one that connects.
    await eventually('it answers', async () => {
      cache.set(key, entry('here'))
      return (await cache.get(key)) !== undefined
    })
    expect(await cache.get(key)).toEqual(entry('here'))
    const others: Partial<CacheKey>[] = [
      { tenantId: 'mallory' },
      { tenantId: 'acme4:vs_1' },
      { corpusId: 'vs_2' },
      { query: 'where?' },
      { passagesMax: 6 },
    ]
    for (const other of others) expect(await cache.get({ ...key, ...other }), JSON.stringify(other)).toBeUndefined()
    cache.set(key, entry('there'))
    await eventually('the newer one is there', async () => (await cache.get(key))?.passages[0]?.text === 'there')
    await cache.close()
  })
})

describe('the memory cache', () => {
  it('stays within its bounds, and forgets the least recently used', () => {
    const cache = new MemoryPassageCache({ entriesMax: 3, bytesMax: 100_000 })
    for (const query of ['a', 'b', 'c']) cache.set({ ...key, query }, entry(query))
    cache.get({ ...key, query: 'a' })
    cache.set({ ...key, query: 'd' }, entry('d'))
    expect(cache.size).toBe(3)
    expect(cache.get({ ...key, query: 'b' })).toBeUndefined()
    expect(cache.get({ ...key, query: 'a' })).toBeDefined()
    for (let i = 0; i < 50; i++) cache.set({ ...key, query: `${i}` }, entry('x'.repeat(20_000)))
    expect(cache.bytes).toBeLessThanOrEqual(100_000)
    cache.set({ ...key, query: 'huge' }, entry('x'.repeat(60_000)))
    expect(cache.get({ ...key, query: 'huge' })).toBeUndefined()
  })
})

describe('a Redis that hangs', () => {
  it('costs its limit, then nothing, and is used again when it comes back', async ({ skip }) => {
    skip(redis === undefined, why)
    const states: string[] = []
    const cache = makeRedis(new Breaker((state) => void states.push(state)), 50_000)
    await eventually('it answers', async () => {
      cache.set(key, entry('here'))
      return (await cache.get(key)) !== undefined
    })
    // On a busy machine the first answers may have been late, too.
    states.length = 0
    redis!.pause()
    for (let i = 0; i < 3; i++) expect(await cache.get(key)).toBeUndefined()
    expect(states).toEqual(['open'])
    // Not even a turn of the event loop, let alone an answer that does not come.
    const later = new Promise((resolve) => setImmediate(resolve, 'later'))
    expect(await Promise.race([cache.get(key), later])).toBeUndefined()
    redis!.resume()
    await eventually('it is used again', async () => (await cache.get(key)) !== undefined)
    expect(states.at(-1)).toBe('closed')
    await cache.close()
  })
})
