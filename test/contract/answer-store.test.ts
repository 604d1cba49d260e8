import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Breaker } from '../../src/base/breaker.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { KeptAnswer } from '../../src/lifecycle/ports.ts'
import { RedisConnection } from '../../src/redis/redis-connection.ts'
import { type AnswerStore, type NewAnswer, SHELF_MAX, type Shelf } from '../../src/retrieval/answers/answer-store.ts'
import { MemoryAnswerStore } from '../../src/retrieval/answers/memory-answer-store.ts'
import { RedisAnswerStore } from '../../src/retrieval/answers/redis-answer-store.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'

/** What every store of answers must do: in memory and in a real Redis. */

const clock = new LiveClock()
const why = missing('redis')
let redis: TestServer | undefined

/** A busy test machine may take longer than the ten milliseconds that are meant for a quiet one. */
const makeRedis = (breaker = new Breaker(), usMax = 2_000_000): RedisAnswerStore =>
  new RedisAnswerStore({ clock, connection: new RedisConnection({ clock, url: redis!.url, breaker, usMax }) })

const KINDS: ReadonlyArray<{ name: string; needsRedis: boolean; open: () => AnswerStore }> = [
  { name: 'memory', needsRedis: false, open: () => new MemoryAnswerStore() },
  { name: 'Redis', needsRedis: true, open: () => makeRedis() },
]

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterAll(() => redis?.close())

const answer = (content: string): KeptAnswer => ({
  content,
  usage: { promptTokens: 20, cachedTokens: 4, outputTokens: 7 },
})
const entry = (content: string, ...parts: number[]): NewAnswer => ({
  vector: Float32Array.from(parts),
  words: `wörds of ${content}`,
  answer: answer(content),
  expiresAt: clock.now() + 60_000_000,
})
let shelves = 0
const newShelf = (tenantId = 'acme'): Shelf => ({ tenantId, name: `shelf-${++shelves}` })

describe.each(KINDS)('an answer store in $name', ({ needsRedis, open }) => {
  if (needsRedis && why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let store: AnswerStore
  beforeAll(async () => {
    store = open()
    // The first question to Redis may be the one that connects.
    await eventually('it answers', async () => (await store.candidates(newShelf())) !== undefined)
  })
  afterAll(() => store?.close())

  const candidatesOf = async (shelf: Shelf) => [...((await store.candidates(shelf)) ?? [])]
  const lying = (shelf: Shelf, count: number) =>
    eventually('it is kept', async () => (await candidatesOf(shelf)).length === count)

  it('gives back what lies on a shelf, vector and answer', async () => {
    const shelf = newShelf()
    expect(await candidatesOf(shelf)).toEqual([])
    store.add(shelf, entry('blue', 0.6, 0.8))
    await lying(shelf, 1)
    const [found] = await candidatesOf(shelf)
    expect(found!.vector[0]).toBeCloseTo(0.6, 2)
    expect(found!.vector[1]).toBeCloseTo(0.8, 2)
    expect(found!.words).toBe('wörds of blue')
    expect(found!.expiresAt).toBeGreaterThan(clock.now())
    expect(await store.read(shelf, found!.id)).toEqual(answer('blue'))
    expect(await store.read(shelf, 'made-up')).toBeUndefined()
  })

  it('shows nothing of one shelf on another, nor of one tenant to another', async () => {
    const shelf = newShelf()
    store.add(shelf, entry('secret', 1, 0))
    await lying(shelf, 1)
    const { id } = (await candidatesOf(shelf))[0]!
    for (const other of [newShelf(), { ...shelf, tenantId: 'globex' }, { ...shelf, name: `${shelf.name}:${id}` }]) {
      expect(await candidatesOf(other)).toEqual([])
      expect(await store.read(other, id)).toBeUndefined()
    }
  })

  it('keeps so many on a shelf: the oldest go', async () => {
    const shelf = newShelf()
    for (let i = 0; i < SHELF_MAX + 5; i++) {
      store.add(shelf, entry(`a${i}`, i, 1))
      // A server takes a thousand commands at a time; what does not fit is not kept.
      if (i % 100 === 99) await store.candidates(shelf)
    }
    const contents = await eventually('the newest is there', async () => {
      const all = await Promise.all((await candidatesOf(shelf)).map(async ({ id }) => await store.read(shelf, id)))
      return all.some((one) => one?.content === `a${SHELF_MAX + 4}`) ? all.map((one) => one?.content) : undefined
    })
    expect(contents).toHaveLength(SHELF_MAX)
    for (let i = 0; i < 5; i++) expect(contents).not.toContain(`a${i}`)
    expect(contents).toContain('a5')
  })

  it('forgets all of one tenant and nothing of another', async () => {
    const mine = newShelf('initech')
    const other = newShelf('globex')
    store.add(mine, entry('mine', 1, 0))
    store.add(other, entry('theirs', 1, 0))
    await lying(mine, 1)
    await lying(other, 1)
    const { id } = (await candidatesOf(mine))[0]!
    await store.forgetTenant('initech')
    expect(await candidatesOf(mine)).toEqual([])
    expect(await store.read(mine, id)).toBeUndefined()
    expect(await candidatesOf(other)).toHaveLength(1)
  })
})

describe('the answer store in memory', () => {
  it('holds no more than it may; the tenant with the most gives up its oldest', () => {
    const store = new MemoryAnswerStore({ entriesMax: 10, bytesMax: 1e6 })
    const small = newShelf('small')
    store.add(small, entry('small', 1))
    for (let i = 0; i < 50; i++) store.add(newShelf('large'), entry(`large ${i}`, 1))
    expect(store.size).toBe(10)
    expect(store.candidates(small)).toHaveLength(1)
    const tight = new MemoryAnswerStore({ entriesMax: 1_000, bytesMax: 10_000 })
    for (let i = 0; i < 50; i++) tight.add(newShelf('large'), entry('x'.repeat(1_000), 1))
    expect(tight.bytes).toBeLessThanOrEqual(10_000)
    tight.add(newShelf('large'), entry('x'.repeat(10_000), 1))
    expect(tight.bytes).toBeLessThanOrEqual(10_000)
    expect(tight.size).toBeGreaterThan(0)
  })
})

describe.skipIf(why !== undefined)('the answer store in Redis', () => {
  it('expires by itself, and is no error when the server hangs', async () => {
    const breaker = new Breaker()
    const store = makeRedis(breaker, 200_000)
    const shelf = newShelf()
    await eventually('it answers', async () => (await store.candidates(shelf)) !== undefined)
    store.add(shelf, { ...entry('soon gone', 1), expiresAt: clock.now() + 300_000 })
    const later = newShelf()
    store.add(later, entry('stays', 1))
    // Redis does one thing after the other: what is kept now was kept after the first.
    await eventually('the second is kept', async () => (await store.candidates(later))?.length === 1)
    await eventually('the first is gone', async () => (await store.candidates(shelf))?.length === 0)
    await eventually('the second has stayed', async () => (await store.candidates(later))?.length === 1)
    redis!.pause()
    try {
      expect(await store.candidates(shelf)).toBeUndefined()
      expect(await store.read(shelf, 'x')).toBeUndefined()
      await store.candidates(shelf)
      expect(breaker.state).toBe('open')
    } finally {
      redis!.resume()
    }
    await eventually('back', async () => (await store.candidates(shelf)) !== undefined)
    await store.close()
  })
})
