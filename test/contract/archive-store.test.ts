import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ArchivedAnswer, archivedBytes } from '../../src/domain/archive.ts'
import type { ArchiveAsk, ArchivePage, ArchiveStore } from '../../src/lifecycle/archive-ports.ts'
import type { Database } from '../../src/store/database.ts'
import { MemoryArchiveStore } from '../../src/store/memory-archive-store.ts'
import { SqlArchiveStore } from '../../src/store/sql-archive-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

/** What every archive must do: in memory, embedded, and on a real PostgreSQL server. */

const NOW = 1_800_000_000_000
const ENDS = NOW + 1_000

const answerOf = (tenantId: string, n: number, more: Partial<ArchivedAnswer> = {}): ArchivedAnswer => ({
  tenantId,
  id: `chatcmpl-${String(n).padStart(4, '0')}`,
  kind: 'chat.completion',
  createdAtMs: NOW - 10_000 + n,
  expiresAtMs: ENDS,
  model: 'm',
  metadata: {},
  document: `{"n":${n}}`,
  input: '[]',
  ...more,
})

const ODD = '{"text":"ü \\u0000 \\\\u0000 \\" \'; drop table archived_answer; --","big":12345678901234567890,"a":1e3 }'
const LIST: ArchiveAsk & { nowMs: number; bytesMax: number } = {
  kind: 'chat.completion',
  limit: 20,
  order: 'asc',
  nowMs: NOW,
  bytesMax: 1e9,
}

describe.each(DATABASES)('the archive in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let database: Database | undefined
  let store: ArchiveStore
  beforeAll(async () => {
    opened = await open()
    database = opened.database
    store = database === undefined ? new MemoryArchiveStore() : new SqlArchiveStore(database)
    await store.tenants('', 1)
  }, 60_000)
  afterAll(() => opened?.close())

  /** Numbers of a page's answers. */
  const idsOf = (page: ArchivePage): readonly number[] => {
    if (page === 'no-such-after') throw new Error('the answer to go on from is there')
    return page.items.map(({ id }) => Number(id.slice(-4)))
  }
  const totalOf = async (tenantId: string) =>
    (await store.tenants('', 1_000)).find((one) => one.tenantId === tenantId) ?? { answers: 0, bytes: 0 }

  it('gives back what was put, to the letter, and to its tenant alone', async () => {
    const metadata = { topic: 'a "quoted" ü', 'odd\\key': '\\u0041' }
    const odd = answerOf('a', 1, { document: ODD, input: `[${ODD}]`, metadata, previousId: 'chatcmpl-0000' })
    await store.put('a', [odd, answerOf('a', 2)])
    await store.put('b', [answerOf('b', 1, { document: '{"of":"b"}' })])
    expect(await store.find('a', 'chat.completion', odd.id, NOW)).toEqual(odd)
    expect((await store.find('b', 'chat.completion', odd.id, NOW))?.document).toBe('{"of":"b"}')
    expect(await store.find('b', 'chat.completion', 'chatcmpl-0002', NOW)).toBeUndefined()
    expect(await store.find('a', 'response', odd.id, NOW)).toBeUndefined()
    expect(await store.find('a', 'chat.completion', "' or true; --", NOW)).toBeUndefined()
  })

  it('replaces an answer of the same id, and counts it once', async () => {
    const before = await store.put('again', [answerOf('again', 1), answerOf('again', 2)])
    const after = await store.put('again', [answerOf('again', 1, { document: '{"n":1,"status":"done"}' })])
    expect([before.answers, after.answers]).toEqual([2, 2])
    expect(after.bytes - before.bytes).toBe(',"status":"done"'.length)
    expect((await store.find('again', 'chat.completion', 'chatcmpl-0001', NOW))?.document).toContain('done')
  })

  it('forgets an answer when its time is over, swept or not', async () => {
    await store.put('old', [answerOf('old', 1), answerOf('old', 2, { expiresAtMs: ENDS + 1 })])
    const { id } = answerOf('old', 1)
    expect(await store.find('old', 'chat.completion', id, ENDS - 1)).toBeDefined()
    expect(await store.find('old', 'chat.completion', id, ENDS)).toBeUndefined()
    expect(await store.changeMetadata({ ...answerOf('old', 1), nowMs: ENDS })).toBeUndefined()
    expect(idsOf(await store.list('old', { ...LIST, nowMs: ENDS }))).toEqual([2])
    expect(idsOf(await store.list('old', { ...LIST, nowMs: ENDS, after: id }))).toEqual([2])
    expect(await store.remove('old', 'chat.completion', id, ENDS)).toBe(false)
  })

  it('lists in order, a page at a time, by model and metadata', async () => {
    const answers = [1, 2, 3, 4, 5, 6].map((n) =>
      answerOf('list', n, {
        model: n % 2 === 0 ? 'even' : 'odd',
        metadata: { half: n > 3 ? 'second' : 'first', n: `${n}` },
      }),
    )
    await store.put('list', [...answers, answerOf('list', 7, { kind: 'response' })])
    const first = await store.list('list', { ...LIST, limit: 4 })
    expect(idsOf(first)).toEqual([1, 2, 3, 4])
    expect(first).toMatchObject({ hasMore: true })
    expect(first).not.toHaveProperty('items.0.input')
    const next = await store.list('list', { ...LIST, limit: 4, after: 'chatcmpl-0004' })
    expect([idsOf(next), (next as { hasMore: boolean }).hasMore]).toEqual([[5, 6], false])
    expect(idsOf(await store.list('list', { ...LIST, limit: 2, order: 'desc', after: 'chatcmpl-0005' }))).toEqual([
      4, 3,
    ])
    expect(idsOf(await store.list('list', { ...LIST, model: 'even', limit: 2 }))).toEqual([2, 4])
    expect(idsOf(await store.list('list', { ...LIST, metadata: { half: 'second' } }))).toEqual([4, 5, 6])
    expect(idsOf(await store.list('list', { ...LIST, metadata: { half: 'second', n: '5' } }))).toEqual([5])
    expect(idsOf(await store.list('list', { ...LIST, after: 'chatcmpl-0006' }))).toEqual([])
    expect(await store.list('list', { ...LIST, after: 'chatcmpl-9999' })).toBe('no-such-after')
    expect(idsOf(await store.list('nobody', LIST))).toEqual([])
  })

  it('lists answers of the same instant in one order, whichever page they are on', async () => {
    await store.put(
      'same',
      [3, 1, 2].map((n) => answerOf('same', n, { createdAtMs: NOW })),
    )
    expect(idsOf(await store.list('same', { ...LIST, limit: 1, after: 'chatcmpl-0001' }))).toEqual([2])
    expect(idsOf(await store.list('same', { ...LIST, order: 'desc' }))).toEqual([3, 2, 1])
  })

  it('bounds the bytes of a page, but always has the first answer', async () => {
    const document = `"${'x'.repeat(1_000)}"`
    await store.put(
      'wide',
      [1, 2, 3].map((n) => answerOf('wide', n, { document })),
    )
    expect(idsOf(await store.list('wide', { ...LIST, bytesMax: 3_000 }))).toEqual([1, 2])
    expect(await store.list('wide', { ...LIST, bytesMax: 3_000 })).toMatchObject({ hasMore: true })
    expect(idsOf(await store.list('wide', { ...LIST, bytesMax: 1 }))).toEqual([1])
  })

  it('changes metadata and removes, and keeps count', async () => {
    await store.put('edit', [answerOf('edit', 1, { metadata: { a: '1' } }), answerOf('edit', 2)])
    const was = await totalOf('edit')
    const change = { tenantId: 'edit', kind: 'chat.completion', id: 'chatcmpl-0001', nowMs: NOW } as const
    const changed = await store.changeMetadata({ ...change, metadata: { b: 'x'.repeat(100) } })
    expect(changed).toEqual(answerOf('edit', 1, { metadata: { b: 'x'.repeat(100) } }))
    expect((await totalOf('edit')).bytes - was.bytes).toBe(99)
    expect(await store.changeMetadata({ ...change, tenantId: 'other', metadata: {} })).toBeUndefined()
    expect(await store.remove('other', 'chat.completion', 'chatcmpl-0001', NOW)).toBe(false)
    expect(await store.remove('edit', 'response', 'chatcmpl-0001', NOW)).toBe(false)
    expect(await store.remove('edit', 'chat.completion', 'chatcmpl-0001', NOW)).toBe(true)
    expect(await store.remove('edit', 'chat.completion', 'chatcmpl-0001', NOW)).toBe(false)
    expect(await totalOf('edit')).toMatchObject({ answers: 1, bytes: archivedBytes(answerOf('edit', 2)) })
  })

  it('makes room: the oldest go, by number and by bytes, a few at a time', async () => {
    const answers = [5, 3, 1, 2, 4].map((n) => answerOf('full', n))
    const { bytes } = await store.put('full', answers)
    const each = bytes / 5
    expect(await store.makeRoom('full', { answers: 5, bytes }, 10)).toBe(0)
    expect(await store.makeRoom('full', { answers: 2, bytes }, 2)).toBe(2)
    expect(idsOf(await store.list('full', LIST))).toEqual([3, 4, 5])
    expect(await store.makeRoom('full', { answers: 9, bytes: each * 2 - 1 }, 10)).toBe(2)
    expect(idsOf(await store.list('full', LIST))).toEqual([5])
    expect(await totalOf('full')).toMatchObject({ answers: 1, bytes: each })
  })

  it('sweeps what has ended, of all tenants, a few at a time', async () => {
    await store.sweep(ENDS + 10, 1_000)
    await store.put('s1', [answerOf('s1', 1), answerOf('s1', 2), answerOf('s1', 3, { expiresAtMs: ENDS + 5 })])
    await store.put('s2', [answerOf('s2', 1)])
    expect(await store.sweep(ENDS - 1, 10)).toBe(0)
    expect(await store.sweep(ENDS, 2)).toBe(2)
    expect(await store.sweep(ENDS, 2)).toBe(1)
    expect(await store.sweep(ENDS, 2)).toBe(0)
    const { answers, bytes } = await totalOf('s1')
    expect([answers, bytes]).toEqual([1, archivedBytes(answerOf('s1', 3))])
    expect(await totalOf('s2')).toEqual({ answers: 0, bytes: 0 })
  })

  it('erases a tenant, a few answers at a time, and leaves no trace of it', async () => {
    await store.put(
      'gone',
      [1, 2, 3].map((n) => answerOf('gone', n)),
    )
    await store.put('stays', [answerOf('stays', 1)])
    expect((await store.tenants('goa', 1)).map(({ tenantId }) => tenantId)).toEqual(['gone'])
    expect(await totalOf('gone')).toMatchObject({ answers: 3, lastWrittenAtMs: answerOf('gone', 3).createdAtMs })
    const { createdAtMs } = answerOf('gone', 3)
    expect(await store.eraseTenant('gone', createdAtMs, 1)).toBe(1)
    expect(await store.eraseTenant('gone', createdAtMs, 2)).toBe(1)
    expect(await store.eraseTenant('gone', createdAtMs, 2)).toBe(0)
    expect(idsOf(await store.list('gone', LIST))).toEqual([3])
    expect(await store.eraseTenant('gone', createdAtMs + 1, 2)).toBe(1)
    expect(await totalOf('gone')).toEqual({ answers: 0, bytes: 0 })
    expect(await store.find('stays', 'chat.completion', 'chatcmpl-0001', NOW)).toBeDefined()
    const left = await database?.query("select count(*)::int as n from archive_total where tenant_id = 'gone'", [])
    expect(left?.[0]?.['n'] ?? 0).toBe(0)
  })

  it('keeps its totals true while writers, removers and sweepers work at once', async () => {
    const work: Array<() => Promise<unknown>> = []
    // The same new ids from several writers at once, then everything mixed.
    const document = `"${'x'.repeat(100_000)}"`
    for (let n = 0; n < 64; n++) work.push(() => store.put('busy1', [answerOf('busy1', 500 + (n >> 3), { document })]))
    for (let n = 0; n < 60; n++) {
      const tenantId = n % 2 === 0 ? 'busy1' : 'busy2'
      const expiresAtMs = n % 5 === 0 ? NOW - 1 : ENDS
      const metadata = { n: 'x'.repeat(n) }
      work.push(() => store.put(tenantId, [answerOf(tenantId, n % 20, { expiresAtMs }), answerOf(tenantId, n + 100)]))
      work.push(() => store.remove(tenantId, 'chat.completion', answerOf(tenantId, n % 13).id, NOW))
      work.push(() => store.changeMetadata({ ...answerOf(tenantId, n % 20), metadata, nowMs: NOW }))
      if (n % 7 === 0) work.push(() => store.sweep(NOW, 3))
      if (n % 9 === 0) work.push(() => store.makeRoom(tenantId, { answers: 12, bytes: 1e9 }, 5))
    }
    // A deadlock may end a statement, which its writer tries again: none may leave the totals wrong.
    await Promise.all(work.map((one) => one().catch(() => undefined)))
    for (const tenantId of ['busy1', 'busy2']) {
      // On a machine that is busy enough, every statement of the crowd may have run out of time: this one does not.
      await store.put(tenantId, [answerOf(tenantId, 900)])
      const { answers, bytes } = await totalOf(tenantId)
      const rows = await database?.query(
        `select count(*)::int as answers, coalesce(sum(bytes), 0)::float8 as bytes from archived_answer where tenant_id = $1`,
        [tenantId],
      )
      if (rows !== undefined) expect({ answers, bytes }).toEqual({ ...rows[0] })
      expect(answers).toBeGreaterThan(0)
    }
  })

  it('reads a chain, oldest first, as far as it goes and may go', async () => {
    const turn = (n: number, previousId?: string): ArchivedAnswer =>
      answerOf('chain', n, { kind: 'response', id: `resp_${n}`, ...(previousId !== undefined && { previousId }) })
    await store.put('chain', [turn(1), turn(2, 'resp_1'), turn(3, 'resp_2'), turn(9, 'resp_8')])
    const ask = { tenantId: 'chain', kind: 'response', nowMs: NOW, answersMax: 10, bytesMax: 1e6 } as const
    const ids = async (more: object) => {
      const chain = await store.chain({ ...ask, id: 'resp_3', ...more })
      return [chain?.answers.map(({ id }) => id), chain?.state]
    }
    expect(await ids({})).toEqual([['resp_1', 'resp_2', 'resp_3'], 'whole'])
    expect(await ids({ answersMax: 2 })).toEqual([['resp_2', 'resp_3'], 'too-long'])
    expect(await ids({ answersMax: 3 })).toEqual([['resp_1', 'resp_2', 'resp_3'], 'whole'])
    expect(await ids({ bytesMax: archivedBytes(turn(3)) * 2 - 1 })).toMatchObject([['resp_3'], 'too-long'])
    expect(await ids({ id: 'resp_9' })).toEqual([['resp_9'], 'broken'])
    expect(await ids({ id: 'resp_8' })).toEqual([undefined, undefined])
    expect(await ids({ tenantId: 'other' })).toEqual([undefined, undefined])
    await store.put('chain', [turn(1, 'resp_3')])
    expect((await ids({ answersMax: 7 }))[0]).toHaveLength(7)
  })
})
