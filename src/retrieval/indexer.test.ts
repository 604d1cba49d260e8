import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Embedder } from '../lifecycle/retrieval-ports.ts'
import { MemoryCorpusStore } from '../store/memory-corpus-store.ts'
import { type IndexedFacts, Indexer } from './indexer.ts'

/** One paragraph for each passage: a heading keeps them apart. */
const textOf = (name: string, passages: number): string =>
  Array.from(
    { length: passages },
    (_, i) => `# ${i}\n${name} has passage ${i}, ${'with words '.repeat(1 + (i % 7))}`,
  ).join('\n\n')

const DIMENSIONS = 2

function makeWorld(embedUs = 1_000) {
  const clock = new VirtualClock()
  const store = new MemoryCorpusStore()
  const sets: string[][] = []
  const ended: Array<readonly [string, IndexedFacts]> = []
  let isFaulty = (_text: string): boolean => false
  const embedder: Embedder = {
    name: 'test',
    dimensions: DIMENSIONS,
    async embed(texts) {
      sets.push([...texts])
      await clock.sleep(embedUs * texts.length)
      if (texts.some((text) => isFaulty(text))) throw Object.assign(new Error('connect 10.0.0.7:80'), { code: 'ECONN' })
      return texts.map(() => Float32Array.from([1, 0]))
    },
    close: () => Promise.resolve(),
  }
  const indexer = new Indexer({
    clock,
    store,
    embedder,
    estimateTokens: (text) => text.length / 4,
    onIndexed: ({ documentId }, facts) => void ended.push([documentId, facts]),
  })
  return {
    clock,
    store,
    indexer,
    sets,
    ended,
    failOn: (fn: (text: string) => boolean) => {
      isFaulty = fn
    },
    async add(tenantId: string, documents: Readonly<Record<string, number>>) {
      const facts = { id: tenantId, tenantId, name: tenantId, embedder: 'test', dimensions: DIMENSIONS }
      await store.createCorpus({ ...facts, metadata: {}, createdAtS: 1 })
      for (const [id, passages] of Object.entries(documents)) {
        const document = { id, name: id, hash: id, text: textOf(id, passages), attributes: {}, createdAtS: 1 }
        await store.addDocument(tenantId, tenantId, document)
      }
    },
  }
}

describe('the indexer', () => {
  it('embeds passages of many documents together, in sets of texts of about the same length', async () => {
    const world = makeWorld()
    await world.add('acme', Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`d${i}`, 2])))
    world.indexer.wake()
    await world.clock.run()
    expect(world.ended.map(([id, { status, passageCount }]) => [id, status, passageCount]).length).toBe(24)
    expect(world.ended.every(([, { status, passageCount }]) => status === 'completed' && passageCount === 2)).toBe(true)
    // 48 passages, eight at a time: by document it would be 24 sets of two.
    expect(world.sets).toHaveLength(6)
    const lengths = world.sets.flat().map(({ length }) => length)
    expect(lengths).toEqual(lengths.toSorted((a, b) => a - b))
    expect(await world.store.findCorpus('acme', 'acme')).toMatchObject({ passageCount: 48, embeddedCount: 48 })
  })

  it('does not let a long document hold up another tenant’s short one', async () => {
    const world = makeWorld()
    await world.add('acme', { long: 500 })
    await world.add('globex', { short: 2 })
    world.indexer.wake()
    await world.clock.run()
    expect(world.ended.map(([id]) => id)).toEqual(['short', 'long'])
    const short = world.ended[0]?.[1]
    const long = world.ended[1]?.[1]
    expect(long?.passageCount).toBe(500)
    expect(short?.tookUs).toBeLessThan((long?.tookUs ?? 0) / 4)
  })

  it('fails a faulty document alone, and tells its owner no address', async () => {
    const world = makeWorld()
    world.failOn((text) => text.includes('bad'))
    await world.add('acme', { good: 3, bad: 3, fine: 3 })
    world.indexer.wake()
    await world.clock.run(secondsToUs(3_600))
    const statuses = Object.fromEntries(world.ended.map(([id, { status }]) => [id, status]))
    expect(statuses).toEqual({ good: 'completed', bad: 'failed', fine: 'completed' })
    const [bad] = await world.store.findDocuments('acme', 'acme', ['bad'])
    expect(bad?.because).toBe('the embedder or the store failed again and again')
  })

  it('goes on where another process stopped', async () => {
    const world = makeWorld(secondsToUs(1))
    await world.add('acme', { long: 100 })
    world.indexer.wake()
    await world.clock.run(secondsToUs(30))
    const stopped = world.indexer.stop()
    await world.clock.run(secondsToUs(60))
    await stopped
    const before = (await world.store.findCorpus('acme', 'acme'))?.embeddedCount ?? 0
    expect(before).toBeGreaterThan(0)
    expect(before).toBeLessThan(100)
    const seen = world.sets.flat().length
    const next = new Indexer({
      clock: world.clock,
      store: world.store,
      embedder: {
        name: 'test',
        dimensions: DIMENSIONS,
        embed: async (texts) => texts.map(() => Float32Array.from([1, 0])),
        close: async () => {},
      },
      estimateTokens: () => 1,
      onIndexed: () => {},
    })
    next.wake()
    await world.clock.run()
    expect(seen).toBeGreaterThanOrEqual(before)
    expect(await world.store.findCorpus('acme', 'acme')).toMatchObject({ embeddedCount: 100, counts: { completed: 1 } })
  })
})
