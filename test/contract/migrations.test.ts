import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { MIGRATIONS, type Migration } from '../../src/store/migrations.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { missing, startPostgres, type TestServer } from '../support/servers.ts'

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

describe.each(KINDS)('migrations on $name', ({ open, needs }) => {
  const why = needs === undefined ? undefined : missing(needs)
  if (why !== undefined && !process.env['CI']) {
    it.skip(why, () => {})
    return
  }
  let database: Database
  beforeAll(async () => {
    database = await open()
    await database.query('select 1', [])
  }, 60_000)
  afterAll(() => database?.close())

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
