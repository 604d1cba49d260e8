import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryEdit, RegistryStore, RegistryWrite } from '../../src/domain/registry.ts'
import type { Database } from '../../src/store/database.ts'
import { MemoryRegistryStore } from '../../src/store/memory-registry-store.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

/** What every store of the registry must do, on all of them: in memory, embedded, and a real PostgreSQL server. */

const write = (expectedRevision: number, ...edits: RegistryEdit[]): RegistryWrite => ({
  expectedRevision,
  atMs: 1_700_000_000_000 + expectedRevision,
  by: 'ada',
  because: `write ${expectedRevision + 1}`,
  edits,
})
const put = (kind: RegistryEdit['kind'], name: string, body: object): RegistryEdit => ({
  kind,
  name,
  body: { ...body },
})
const remove = (kind: RegistryEdit['kind'], name: string): RegistryEdit => ({ kind, name, body: undefined })

describe.each(DATABASES)('a registry in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let database: Database | undefined
  let store: RegistryStore
  beforeAll(async () => {
    opened = await open()
    database = opened.database
    store = database === undefined ? new MemoryRegistryStore() : new SqlRegistryStore(database)
    await store.revision()
  }, 60_000)
  afterAll(() => opened?.close())

  it('is empty at first', async () => {
    expect(await store.load()).toEqual({ revision: 0, entries: [] })
    expect(await store.history({ limit: 10 })).toEqual([])
  })

  it('keeps what was written, all of it at one revision, in order', async () => {
    const body = { name: 'llama', aliases: ['l'], nested: { 'an "odd" key': [1, null, 'ü \\ \n'] } }
    expect(await store.write(write(0, put('pool', 'p', { model: 'llama' }), put('model', 'llama', body)))).toBe(1)
    expect(await store.load()).toEqual({
      revision: 1,
      entries: [
        { kind: 'model', name: 'llama', body },
        { kind: 'pool', name: 'p', body: { model: 'llama' } },
      ],
    })
    expect(await store.revision()).toBe(1)
  })

  it('replaces and removes, and remembers before and after, newest first', async () => {
    expect(await store.write(write(1, put('pool', 'p', { model: 'other' })))).toBe(2)
    expect(await store.write(write(2, remove('pool', 'p'), put('release', 'llama@2', { version: '2' })))).toBe(3)
    expect((await store.load()).entries.map(({ name }) => name)).toEqual(['llama', 'llama@2'])
    const [newest, removal, replacement] = await store.history({ limit: 3 })
    expect(newest).toMatchObject({ revision: 3, name: 'llama@2', before: undefined, after: { version: '2' } })
    expect(removal).toMatchObject({ name: 'p', before: { model: 'other' }, after: undefined, by: 'ada' })
    expect(replacement).toMatchObject({ revision: 2, before: { model: 'llama' }, because: 'write 2' })
    expect(replacement?.atMs).toBe(1_700_000_000_001)
  })

  it('tells the history of one model with its releases and pools, also those that it had', async () => {
    const history = await store.history({ name: 'llama', limit: 10 })
    expect(history.map(({ revision, name }) => `${revision} ${name}`)).toEqual(['3 llama@2', '2 p', '1 llama', '1 p'])
    expect((await store.history({ name: 'other', limit: 10 })).map(({ revision }) => revision)).toEqual([3, 2])
    expect(await store.history({ name: 'nobody', limit: 10 })).toEqual([])
    expect(await store.history({ limit: 1 })).toHaveLength(1)
  })

  it('lets one of several writers win, and changes nothing for the others', async () => {
    const { revision, entries } = await store.load()
    expect(await store.write(write(revision - 1, put('pool', 'late', {})))).toBe('stale')
    expect(await store.write(write(revision + 7, put('pool', 'early', {})))).toBe('stale')
    expect(await store.load()).toEqual({ revision, entries })
    const ends = await Promise.all(
      [1, 2, 3, 4, 5].map((i) =>
        store.write(write(revision, put('pool', `p${i}`, { i }), put('pool', 'shared', { i }))),
      ),
    )
    expect(ends.filter((end) => end === revision + 1)).toHaveLength(1)
    expect(ends.filter((end) => end === 'stale')).toHaveLength(4)
    const names = (await store.load()).entries.map(({ name }) => name).filter((name) => /^p\d$|shared/.test(name))
    expect(names).toHaveLength(2)
  })

  it('tells the replicas of a pool, and those of the pools that are a model’s by the file', async () => {
    const { revision } = await store.load()
    const ids = ['f-gpu-1', 'f-gpu-2', 'g-gpu-3'] as const
    const edits = ids.map((id) => put('replica', id, { pool: id.slice(0, 1), url: 'http://x' }))
    expect(await store.write(write(revision, ...edits))).toBe(revision + 1)
    expect(await store.write(write(revision + 1, remove('replica', 'f-gpu-1')))).toBe(revision + 2)
    const namesOf = async (name: string, ...poolIds: string[]) =>
      (await store.history({ name, poolIds, limit: 10 })).map((change) => change.name)
    expect(await namesOf('f')).toEqual(['f-gpu-1', 'f-gpu-2', 'f-gpu-1'])
    expect(await namesOf('f-gpu-2')).toEqual(['f-gpu-2'])
    expect(await namesOf('filed', 'f')).toEqual(['f-gpu-1', 'f-gpu-2', 'f-gpu-1'])
    expect(await namesOf('filed', 'f', 'g')).toEqual(['f-gpu-1', 'g-gpu-3', 'f-gpu-2', 'f-gpu-1'])
    expect(await namesOf('filed')).toEqual([])
  })

  it('takes rubbish for what it is: text', async () => {
    const { revision } = await store.load()
    const name = "'; drop table registry_entry; --"
    expect(await store.write(write(revision, put('model', name, { [name]: name, deep: { a: [{}] } })))).toBe(
      revision + 1,
    )
    expect((await store.load()).entries.find((entry) => entry.name === name)?.body).toMatchObject({ [name]: name })
    expect((await store.history({ name, limit: 1 }))[0]?.after).toMatchObject({ [name]: name })
  })
})
