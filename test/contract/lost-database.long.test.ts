import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { detailOf } from '../../src/base/detail-of.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { type Database, DatabaseUnavailable } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlCorpusStore } from '../../src/store/sql-corpus-store.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { missing } from '../support/installed.ts'
import { freePort, startPostgres, type TestServer } from '../support/servers.ts'

/** A database that loses what it had while a process uses it: migrated again, or refused with a reason. */

const clock = new LiveClock()
let postgres: TestServer | undefined

const KINDS: ReadonlyArray<{ name: string; needs?: 'postgresql'; open: () => Promise<Database> }> = [
  { name: 'PGlite', open: () => Promise.resolve(new PgliteDatabase({ clock, path: undefined })) },
  {
    name: 'PostgreSQL',
    needs: 'postgresql',
    async open() {
      postgres = await startPostgres()
      return new PgDatabase({ clock, url: postgres.url })
    },
  },
]
afterAll(() => postgres?.close())

const corpus = (id: string) => ({
  id,
  tenantId: 'acme',
  name: id,
  embedder: 'e',
  dimensions: 3,
  metadata: {},
  createdAtS: 1,
})
const file = { id: 'file-1', name: 'f', purpose: 'p', bytes: 1, createdAtS: 1 }
const edit = { kind: 'model' as const, name: 'm', body: { name: 'm' } }

const prepared = (database: Database): PreparedDatabase => new PreparedDatabase(database, (db) => migrate(db))

describe.each(KINDS)('$name', ({ open, needs }) => {
  const why = needs === undefined ? undefined : missing(needs)
  if (why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let inner: Database
  let database: PreparedDatabase
  beforeAll(async () => {
    inner = await open()
    database = prepared(inner)
    await new SqlCorpusStore(database).createCorpus(corpus('vs_before'))
  }, 60_000)
  afterAll(() => database?.close())

  it('that comes back empty is migrated again by the next statement, whichever it is', async () => {
    const store = new SqlCorpusStore(database)
    const registry = new SqlRegistryStore(database)
    const statements: Array<() => Promise<unknown>> = [
      () => store.findCorpus('acme', 'vs_before'),
      () => store.createCorpus(corpus('vs_after')),
      () => store.addFile('acme', file, 'x'),
      () => store.unfinished(1),
      () => store.refreshStatistics(),
      () => registry.load(),
      () => registry.write({ expectedRevision: 0, atMs: 1, by: 'a', because: 'b', edits: [edit] }),
    ]
    for (const statement of statements) {
      await inner.run('drop schema public cascade; create schema public;')
      await statement()
    }
    expect(await registry.revision()).toBe(1)
    expect(await store.findCorpus('acme', 'vs_after')).toBeUndefined()
    await store.createCorpus(corpus('vs_new'))
    const [index] = await inner.query("select indexname from pg_indexes where indexname = 'passage_vector_3'", [])
    expect(index).toBeDefined()
  }, 60_000)

  it('that comes back empty is migrated once, though many statements find it so', async () => {
    await inner.run('drop schema public cascade; create schema public;')
    const store = new SqlCorpusStore(database)
    const asked = Array.from({ length: 20 }, (_, i) => store.createCorpus(corpus(`vs_many${i}`)))
    expect(await Promise.all(asked)).toHaveLength(20)
  }, 60_000)

  it('that has lost some tables says so, and quotes them to operators alone', async () => {
    await inner.run('drop table file')
    const asked = new SqlCorpusStore(database).addFile('acme', file, 'x')
    const error = await asked.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(DatabaseUnavailable)
    expect((error as Error).message).toBe('The database has lost some of its tables.')
    expect(detailOf(error)).toContain('"file" does not exist')
  }, 60_000)
})

it('an embedded folder that is deleted is made anew, and clients do not read its path', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-lost-'))
  const path = join(folder, 'store')
  const database = prepared(new PgliteDatabase({ clock, path }))
  try {
    const store = new SqlCorpusStore(database)
    await store.createCorpus(corpus('vs_before'))
    rmSync(path, { recursive: true, force: true })
    const error = await store.createCorpus(corpus('vs_during')).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(DatabaseUnavailable)
    expect((error as Error).message).not.toContain(folder)
    expect(detailOf(error)).toContain(path)
    expect(await store.createCorpus(corpus('vs_after'))).toMatchObject({ id: 'vs_after' })
    expect(await store.findCorpus('acme', 'vs_before')).toBeUndefined()
  } finally {
    await database.close()
    rmSync(folder, { recursive: true, force: true })
  }
}, 60_000)

it('a server that is not there is refused without its address', async () => {
  const url = `postgres://someone:secret@127.0.0.1:${await freePort()}/name`
  const database = prepared(new PgDatabase({ clock, url }))
  const error = await database.query('select 1', []).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(DatabaseUnavailable)
  expect((error as Error).message).toBe('The database cannot be reached (ECONNREFUSED).')
  expect(detailOf(error)).toContain('127.0.0.1')
  expect(detailOf(error)).not.toContain('secret')
  await database.close()
})
