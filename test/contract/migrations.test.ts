import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { MIGRATIONS, type Migration } from '../../src/store/migrations.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { SqlCorpusStore } from '../../src/store/sql-corpus-store.ts'
import { missing } from '../support/installed.ts'
import { READY_DATABASE } from '../support/ready-database.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'

/** From empty, from the last release, and by several processes at once; on the embedded database and on a real server. */

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

const NEXT: Migration = {
  step: (MIGRATIONS.at(-1)?.step ?? 0) + 1,
  name: 'next',
  sql: "alter table corpus add column colour text not null default 'blue';\ncreate index corpus_colour on corpus (colour);\n",
}

const TERM_SEVEN = { weights: [{ termId: 7, weight: 1 }], oneOf: [7], limit: 5 }

describe.each(KINDS)('migrations on $name', ({ open, needs }) => {
  const why = needs === undefined ? undefined : missing(needs)
  if (why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let database: Database
  beforeAll(async () => {
    const ready = process.env[READY_DATABASE]
    // Other tests begin with a migrated database; the migrations themselves begin with an empty one.
    delete process.env[READY_DATABASE]
    database = await open()
    await database.query('select 1', [])
    process.env[READY_DATABASE] = ready
  }, 60_000)
  afterAll(() => database?.close())

  it('move what the first release stored, and keep it searchable', async () => {
    expect(await database.query("select to_regclass('schema_step')::text as steps", [])).toEqual([{ steps: null }])
    expect(await migrate(database, MIGRATIONS.slice(0, 1))).toBe(1)
    await database.run(`
      insert into corpus (tenant_id, id, name, embedder, dimensions, created_at_s) values ('old', 'c', 'n', 'e', 3, 1);
      insert into document (tenant_id, corpus_id, id, name, hash, body, bytes, created_at_s)
        values ('old', 'c', 'd', 'd', 'h', 'text', 4, 1);
      insert into passage (tenant_id, corpus_id, document_id, position, body, tokens)
        values ('old', 'c', 'd', 0, 'one', 1), ('old', 'c', 'd', 1, 'two', 1);
      insert into passage_index (passage_id, tenant_id, corpus_id, document_id, terms, weights, dimensions, embedding)
        select id, 'old', 'c', 'd', '{7}', '{7:1.5}/1000000000', 3, case position when 0 then '[1,0,0]'::halfvec end
        from passage where tenant_id = 'old';`)
    await migrate(database)
    const store = new SqlCorpusStore(database)
    const vector = Float32Array.from([1, 0, 0])
    expect((await store.searchVectors('old', 'c', { vector, limit: 5 })).map(({ score }) => score)).toEqual([1])
    expect(await store.searchTerms('old', 'c', TERM_SEVEN)).toHaveLength(2)
    expect((await store.unembedded('old', 'c', 'd', 5)).map(({ text }) => text)).toEqual(['two'])
    const [index] = await database.query("select indexdef from pg_indexes where indexname = 'passage_vector_3'", [])
    expect(index?.['indexdef']).toContain('hnsw')
    await database.run('drop schema public cascade; create schema public;')
  })

  it('go from empty to the newest, once, whoever starts', async () => {
    const newest = MIGRATIONS.at(-1)?.step
    expect(await Promise.all([migrate(database), migrate(database), migrate(database)])).toEqual([
      newest,
      newest,
      newest,
    ])
    expect(await database.query('select step, name from schema_step order by step', [])).toEqual(
      MIGRATIONS.map(({ step, name }) => ({ step, name })),
    )
  })

  it('go on from the last release, and keep what is stored', async () => {
    await database.run(
      "insert into corpus (tenant_id, id, name, embedder, dimensions, created_at_s) values ('t', 'c', 'n', 'e', 4, 1)",
    )
    await migrate(database, [...MIGRATIONS, NEXT])
    expect(await database.query('select name, colour from corpus', [])).toEqual([{ name: 'n', colour: 'blue' }])
  })

  it('leave a database alone that is newer than they are', async () => {
    await expect(migrate(database)).rejects.toThrow('Run a newer Spillway')
  })

  it('do a step whole or not at all', async () => {
    const broken: Migration = {
      step: NEXT.step + 1,
      name: 'broken',
      sql: 'create table half (id int);\nselect no_such_thing();\n',
    }
    await expect(migrate(database, [...MIGRATIONS, NEXT, broken])).rejects.toThrow('no_such_thing')
    expect(await database.query("select to_regclass('half')::text as half", [])).toEqual([{ half: null }])
  })
})
