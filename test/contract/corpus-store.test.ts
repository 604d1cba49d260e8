import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { CorpusStore, NewDocument, PassageDraft } from '../../src/lifecycle/retrieval-ports.ts'
import { countTerms, queryTermIds } from '../../src/retrieval/indexes/analyse-text.ts'
import { termWeights, toTermSearch } from '../../src/retrieval/indexes/bm25.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { MemoryCorpusStore } from '../../src/store/memory-corpus-store.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlCorpusStore } from '../../src/store/sql-corpus-store.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'

/** What every store of corpora must do, on all of them: in memory, embedded, and a real PostgreSQL server. */

const clock = new LiveClock()
let postgres: TestServer | undefined

const KINDS: ReadonlyArray<{ name: string; open: () => Promise<CorpusStore>; needs?: 'postgresql' }> = [
  { name: 'memory', open: () => Promise.resolve(new MemoryCorpusStore()) },
  {
    name: 'PGlite',
    open: () =>
      Promise.resolve(
        new SqlCorpusStore(new PreparedDatabase(new PgliteDatabase({ clock, path: undefined }), (db) => migrate(db))),
      ),
  },
  {
    name: 'PostgreSQL',
    needs: 'postgresql',
    async open() {
      postgres = await startPostgres()
      return new SqlCorpusStore(new PreparedDatabase(new PgDatabase({ clock, url: postgres.url }), (db) => migrate(db)))
    },
  },
]

afterAll(() => postgres?.close())

const DIMENSIONS = 4

function document(id: string, text: string, attributes: NewDocument['attributes'] = {}): NewDocument {
  return { id, name: `${id}.txt`, hash: `hash of ${text}`, text, attributes, createdAtS: 1_700_000_000 }
}

function draft(corpusId: string, position: number, text: string): PassageDraft {
  return { position, text, tokens: 5, ...termWeights(countTerms(corpusId, text)) }
}

const unit = (...parts: number[]): Float32Array => {
  const length = Math.hypot(...parts)
  return Float32Array.from(parts, (part) => part / length)
}

describe.each(KINDS)('a corpus store in $name', ({ open, needs }) => {
  const why = needs === undefined ? undefined : missing(needs)
  if (why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let store: CorpusStore
  let made = 0
  beforeAll(async () => {
    store = await open()
    // The first question opens it, which is not what the first test measures.
    await store.findCorpus('nobody', 'nothing')
  }, 60_000)
  afterAll(() => store?.close())

  async function corpusOf(tenantId: string, name = `corpus-${++made}`) {
    const id = `vs_${++made}`
    return store.createCorpus({
      id,
      tenantId,
      name,
      embedder: 'test',
      dimensions: DIMENSIONS,
      metadata: { a: 'b' },
      createdAtS: 7,
    })
  }

  async function documentOf(tenantId: string, corpusId: string, documentId: string) {
    return (await store.findDocuments(tenantId, corpusId, [documentId]))[0]
  }

  /** A corpus with one document of these passages, embedded along the axes. */
  async function filled(tenantId: string, texts: readonly string[], attributes: NewDocument['attributes'] = {}) {
    const corpus = await corpusOf(tenantId)
    const documentId = `doc-${++made}`
    await store.addDocument(tenantId, corpus.id, document(documentId, texts.join('\n'), attributes))
    await store.addPassages(
      tenantId,
      corpus.id,
      documentId,
      texts.map((text, i) => draft(corpus.id, i, text)),
    )
    await store.finishSplit(tenantId, corpus.id, documentId)
    const waiting = await store.unembedded(tenantId, corpus.id, documentId, 100)
    const vectors = waiting.map(({ passageId }, i) => {
      const parts = [0.1, 0.1, 0.1, 0.1]
      parts[i % DIMENSIONS] = 1
      return { passageId, vector: unit(...parts) }
    })
    await store.setVectors(tenantId, corpus.id, vectors)
    await store.finishDocument(tenantId, corpus.id, documentId, { status: 'completed' })
    return { corpusId: corpus.id, documentId, passageIds: waiting.map(({ passageId }) => passageId) }
  }

  async function searchTerms(
    tenantId: string,
    corpusId: string,
    query: string,
    filter?: Parameters<CorpusStore['searchTerms']>[2]['filter'],
  ) {
    const facts = await store.termFacts(tenantId, corpusId, queryTermIds(corpusId, query))
    const search = toTermSearch(facts, 10)
    return search === undefined ? [] : store.searchTerms(tenantId, corpusId, { ...search, filter })
  }

  it('makes corpora, and finds them by id and by name', async () => {
    const corpus = await corpusOf('acme', 'handbook')
    expect(corpus).toMatchObject({
      tenantId: 'acme',
      name: 'handbook',
      version: 1,
      passageCount: 0,
      metadata: { a: 'b' },
    })
    expect(await store.findCorpus('acme', 'handbook')).toEqual(corpus)
    expect(await store.findCorpus('acme', corpus.id)).toEqual(corpus)
    expect(await store.resolveCorpus('acme', 'handbook')).toMatchObject({ id: corpus.id, dimensions: DIMENSIONS })
    await expect(corpusOf('acme', 'handbook')).rejects.toMatchObject({ code: 'name-taken' })
    const other = await corpusOf('acme')
    await expect(store.updateCorpus('acme', other.id, { name: 'handbook' })).rejects.toMatchObject({
      code: 'name-taken',
    })
    expect(await store.updateCorpus('acme', other.id, { name: 'renamed' })).toMatchObject({
      name: 'renamed',
      metadata: { a: 'b' },
    })
    expect(await store.deleteCorpus('acme', corpus.id)).toBe(true)
    expect(await store.findCorpus('acme', 'handbook')).toBeUndefined()
  })

  it('lists page by page, in both orders', async () => {
    const ids = []
    for (let i = 0; i < 5; i++) ids.push((await corpusOf('pager')).id)
    const first = await store.listCorpora('pager', { limit: 2, order: 'asc' })
    expect(first).toMatchObject({ hasMore: true, items: [{ id: ids[0] }, { id: ids[1] }] })
    const second = await store.listCorpora('pager', { limit: 10, order: 'asc', after: ids[1] })
    expect(second.items.map(({ id }) => id)).toEqual(ids.slice(2))
    expect(second.hasMore).toBe(false)
    const back = await store.listCorpora('pager', { limit: 2, order: 'desc', after: ids[3] })
    expect(back.items.map(({ id }) => id)).toEqual([ids[2], ids[1]])
  })

  it('keeps one document per content, and takes up a failed one again', async () => {
    const { id } = await corpusOf('acme')
    const one = await store.addDocument('acme', id, document('d1', 'same text'))
    const two = await store.addDocument('acme', id, document('d2', 'same text', { a: 1 }))
    expect(two).toMatchObject({ id: one.id, attributes: { a: 1 } })
    expect((await store.findCorpus('acme', id))?.bytes).toBe(9)
    await store.finishDocument('acme', id, 'd1', { status: 'failed', because: 'why' })
    expect(await documentOf('acme', id, 'd1')).toMatchObject({ status: 'failed', because: 'why' })
    expect(await store.addDocument('acme', id, document('d1', 'same text'))).toMatchObject({ status: 'in-progress' })
    await store.deleteCorpus('acme', id)
  })

  it('finds several documents at once, whatever their ids, and leaves out what is not there', async () => {
    const { id } = await corpusOf('acme')
    const ids = ['d1', `it's "quoted", {braced}`, 'd3']
    for (const one of ids) await store.addDocument('acme', id, document(one, `text of ${one}`))
    const found = await store.findDocuments('acme', id, [...ids, 'd1', 'not there'])
    expect(found.map((one) => one.id).sort()).toEqual(ids.toSorted())
    expect(await store.findDocuments('globex', id, ids)).toEqual([])
    await store.deleteCorpus('acme', id)
  })

  it('says what is unfinished: unsplit first, tenants in turns', async () => {
    const a = await corpusOf('turn-a')
    const b = await corpusOf('turn-b')
    for (const n of [1, 2]) await store.addDocument('turn-a', a.id, document(`a${n}`, `text a${n}`))
    await store.addDocument('turn-b', b.id, document('b1', 'text b1'))
    await store.finishSplit('turn-a', a.id, 'a1')
    const order = (await store.unfinished(10)).map(({ documentId, isSplit }) => `${documentId}${isSplit ? '+' : ''}`)
    expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a1+'))
    expect(order.at(-1)).toBe('a1+')
    expect(await store.unfinished(1)).toHaveLength(1)
    await store.deleteCorpus('turn-a', a.id)
    await store.deleteCorpus('turn-b', b.id)
  })

  it('adds passages once, however often it is told to', async () => {
    const { corpusId, documentId } = await filled('acme', ['red apples', 'green pears'])
    const before = await store.findCorpus('acme', corpusId)
    const again = [
      draft(corpusId, 0, 'red apples'),
      draft(corpusId, 1, 'green pears'),
      draft(corpusId, 2, 'blue plums'),
    ]
    await store.addPassages('acme', corpusId, documentId, again)
    const corpus = await store.findCorpus('acme', corpusId)
    expect(corpus).toMatchObject({ passageCount: 3 })
    expect(corpus!.version).toBeGreaterThan(before!.version)
    expect(await documentOf('acme', corpusId, documentId)).toMatchObject({ passageCount: 3, embeddedCount: 2 })
    expect(await store.findCorpus('acme', corpusId)).toMatchObject({ passageCount: 3, embeddedCount: 2 })
    expect((await store.termFacts('acme', corpusId, queryTermIds(corpusId, 'apples'))).passagesWith.size).toBe(1)
    expect(await store.unembedded('acme', corpusId, documentId, 10)).toMatchObject([{ text: 'blue plums' }])
  })

  it('finds by words, rare ones first', async () => {
    const texts = ['water flows downhill', 'water and mitochondria', 'water everywhere', 'nothing of the kind']
    const { corpusId, passageIds } = await filled('acme', texts)
    const hits = await searchTerms('acme', corpusId, 'mitochondria in water')
    expect(hits[0]!.passageId).toBe(passageIds[1])
    expect(hits.map(({ passageId }) => passageId).sort()).toEqual(passageIds.slice(0, 3).sort())
    expect(hits[0]!.score).toBeGreaterThan(hits[1]!.score)
    expect(await searchTerms('acme', corpusId, 'unheard of')).toEqual([])
  })

  it('finds by meaning, nearest first', async () => {
    const { corpusId, passageIds } = await filled('acme', ['a', 'b', 'c', 'd'])
    const hits = await store.searchVectors('acme', corpusId, { vector: unit(0.2, 0.1, 1, 0.1), limit: 2 })
    expect(hits).toHaveLength(2)
    expect(hits[0]!.passageId).toBe(passageIds[2])
    expect(hits[0]!.score).toBeGreaterThan(0.9)
  })

  it('reads passages with their source', async () => {
    const { corpusId, documentId, passageIds } = await filled('acme', ['first', 'second'], { year: 2020 })
    const read = await store.readPassages('acme', corpusId, [passageIds[1]!, '999999'])
    expect(read).toMatchObject([
      {
        id: passageIds[1],
        documentId,
        source: `${documentId}.txt`,
        position: 1,
        text: 'second',
        attributes: { year: 2020 },
      },
    ])
  })

  it('filters by attributes', async () => {
    const { corpusId, documentId } = await filled('acme', ['trains run late'], {
      year: 2020,
      kind: 'rail',
      isOld: true,
    })
    const cases: ReadonlyArray<readonly [Parameters<typeof searchTerms>[3], boolean]> = [
      [{ type: 'eq', key: 'kind', value: 'rail' }, true],
      [{ type: 'eq', key: 'kind', value: 'road' }, false],
      [{ type: 'eq', key: 'isOld', value: true }, true],
      [{ type: 'ne', key: 'kind', value: 'road' }, true],
      [{ type: 'ne', key: 'absent', value: 'x' }, true],
      [{ type: 'gt', key: 'year', value: 2019 }, true],
      [{ type: 'gt', key: 'year', value: 2020 }, false],
      [{ type: 'lte', key: 'year', value: 2020 }, true],
      [{ type: 'gt', key: 'kind', value: 1 }, false],
      [{ type: 'in', key: 'kind', value: ['road', 'rail'] }, true],
      [{ type: 'nin', key: 'kind', value: ['road', 'rail'] }, false],
      [{ type: 'nin', key: 'absent', value: ['x'] }, true],
      [
        {
          type: 'and',
          filters: [
            { type: 'gt', key: 'year', value: 2019 },
            { type: 'eq', key: 'kind', value: 'road' },
          ],
        },
        false,
      ],
      [
        {
          type: 'or',
          filters: [
            { type: 'gt', key: 'year', value: 2019 },
            { type: 'eq', key: 'kind', value: 'road' },
          ],
        },
        true,
      ],
      [{ type: 'eq', key: "' or true --", value: "'); drop table corpus; --" }, false],
    ]
    for (const [filter, isFound] of cases) {
      expect(await searchTerms('acme', corpusId, 'trains', filter), JSON.stringify(filter)).toHaveLength(
        isFound ? 1 : 0,
      )
      const near = await store.searchVectors('acme', corpusId, { vector: unit(1, 1, 1, 1), limit: 5, filter })
      expect(near, JSON.stringify(filter)).toHaveLength(isFound ? 1 : 0)
    }
    await store.updateDocument('acme', corpusId, documentId, { kind: 'road' })
    expect(await searchTerms('acme', corpusId, 'trains', { type: 'eq', key: 'kind', value: 'road' })).toHaveLength(1)
  })

  it('forgets what was deleted, everywhere', async () => {
    const { corpusId, documentId, passageIds } = await filled('acme', ['secret recipe'])
    const before = await store.findCorpus('acme', corpusId)
    expect(await store.deleteDocument('acme', corpusId, documentId)).toBe(true)
    expect(await store.deleteDocument('acme', corpusId, documentId)).toBe(false)
    expect(await searchTerms('acme', corpusId, 'secret recipe')).toEqual([])
    expect(await store.searchVectors('acme', corpusId, { vector: unit(1, 1, 1, 1), limit: 5 })).toEqual([])
    expect(await store.readPassages('acme', corpusId, passageIds)).toEqual([])
    const after = await store.findCorpus('acme', corpusId)
    expect(after).toMatchObject({ passageCount: 0, bytes: 0, deletions: before!.deletions + 1 })
  })

  it('shows nothing of one tenant to another, whatever ids it uses', async () => {
    const { corpusId, documentId, passageIds } = await filled('acme', ['the vault code is 4711'])
    const mine = await filled('mallory', ['my own text'])
    const t = 'mallory'
    expect(await store.findCorpus(t, corpusId)).toBeUndefined()
    expect(await store.resolveCorpus(t, corpusId)).toBeUndefined()
    expect(await store.updateCorpus(t, corpusId, { name: 'x' })).toBeUndefined()
    expect(await store.deleteCorpus(t, corpusId)).toBe(false)
    await expect(store.addDocument(t, corpusId, document('evil', 'evil'))).rejects.toMatchObject({
      code: 'no-such-corpus',
    })
    expect((await store.listDocuments(t, corpusId, { limit: 9, order: 'asc' })).items).toEqual([])
    expect(await documentOf(t, corpusId, documentId)).toBeUndefined()
    expect(await store.documentText(t, corpusId, documentId)).toBeUndefined()
    expect(await store.updateDocument(t, corpusId, documentId, {})).toBeUndefined()
    expect(await store.deleteDocument(t, corpusId, documentId)).toBe(false)
    await store.addPassages(t, corpusId, documentId, [draft(corpusId, 7, 'planted')])
    await store.setVectors(t, corpusId, [{ passageId: passageIds[0]!, vector: unit(1, 0, 0, 0) }])
    await store.finishDocument(t, corpusId, documentId, { status: 'failed' })
    expect((await store.termFacts(t, corpusId, queryTermIds(corpusId, 'vault code'))).passagesWith.size).toBe(0)
    expect(await searchTerms(t, corpusId, 'vault code')).toEqual([])
    const weights = queryTermIds(corpusId, 'vault code').map((termId) => ({ termId, weight: 1 }))
    const oneOf = weights.map(({ termId }) => termId)
    for (const target of [corpusId, mine.corpusId]) {
      expect(await store.searchTerms(t, target, { weights, oneOf, limit: 9 })).toEqual([])
      expect(await store.readPassages(t, target, passageIds)).toEqual([])
      const near = await store.searchVectors(t, target, { vector: unit(1, 1, 1, 1), limit: 9 })
      expect(near.map(({ passageId }) => passageId)).not.toContain(passageIds[0])
    }
    // And nothing of it was changed.
    expect(await documentOf('acme', corpusId, documentId)).toMatchObject({
      status: 'completed',
      passageCount: 1,
    })
  })

  it('keeps files apart too', async () => {
    const file = { id: `file-${++made}`, name: 'f.txt', purpose: 'assistants', bytes: 4, createdAtS: 5 }
    await store.addFile('acme', file, 'text')
    expect(await store.findFiles('acme', [file.id, 'none'])).toEqual([file])
    expect(await store.fileText('acme', file.id)).toBe('text')
    expect((await store.listFiles('acme', { limit: 5, order: 'desc' })).items).toContainEqual(file)
    expect(await store.findFiles('mallory', [file.id])).toEqual([])
    expect(await store.fileText('mallory', file.id)).toBeUndefined()
    expect(await store.deleteFile('mallory', file.id)).toBe(false)
    expect(await store.deleteFile('acme', file.id)).toBe(true)
  })
})
