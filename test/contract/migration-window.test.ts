import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { MIGRATIONS, type Migration } from '../../src/store/migrations.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { breakingParts } from '../support/additive-steps.ts'
import { type OpenedDatabase, SQL_DATABASES } from '../support/databases.ts'

/** Two versions side by side: programs of this step on a database of the next one, and back again. */
const newest = MIGRATIONS.at(-1)?.step ?? 0

const next = (more: Partial<Migration> = {}): Migration => ({
  step: newest + 1,
  name: 'next',
  usableFrom: newest,
  sql: "alter table registry_entry add column colour text not null default 'blue';\ncreate table of_the_next (id int);\n",
  ...more,
})

describe('steps', () => {
  it('after 13 run programs of the step before, and only add', () => {
    for (const migration of MIGRATIONS.filter(({ step }) => step > 13)) {
      expect([migration.name, migration.usableFrom]).toEqual([migration.name, migration.step - 1])
      expect([migration.name, breakingParts(migration)]).toEqual([migration.name, []])
    }
  })

  it('are found to break when they do', () => {
    const parts = (sql: string, step = 20) => breakingParts({ step, name: 'x', sql })
    expect(parts(next().sql)).toEqual([])
    expect(parts('create index a on b (c);\ncreate table d (e int not null primary key);\n')).toEqual([])
    expect(parts('alter table a drop column b;')).toEqual(['takes something away'])
    expect(parts('alter table a rename column b to c;')).toEqual(['renames something'])
    expect(parts('alter table a alter column b type text;')).toEqual(['changes a type'])
    expect(parts('alter table a add column b int not null;')).toEqual(['adds a column that older programs leave empty'])
    expect(parts('alter table a add column b int not null default 0;')).toEqual([])
    expect(parts('alter table a alter column b set not null;')).toHaveLength(1)
    expect(parts('alter table a add constraint b check (c > 0);')).toHaveLength(1)
    expect(parts('create unique index a on b (c);')).toHaveLength(1)
    expect(parts('delete from a;')).toEqual(['deletes rows'])
    expect(parts('-- unused since step 19\nalter table a drop column b;')).toEqual([])
    expect(parts('-- unused since step 20\nalter table a drop column b;')).toEqual(['takes something away'])
  })
})

describe.each(SQL_DATABASES)('the window on $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase
  let database: Database
  beforeAll(async () => {
    opened = await open()
    database = opened.database as Database
    await database.query('select 1', [])
  }, 60_000)
  afterAll(() => opened?.close())

  it('lets a program go on while a newer one migrates, and start on the newer schema', async () => {
    const running = new SqlRegistryStore(database)
    const write = (expectedRevision: number, name: string) =>
      running.write({
        expectedRevision,
        atMs: 1,
        by: 'ada',
        because: 'x',
        edits: [{ kind: 'model', name, body: { name } }],
      })
    expect(await write(0, 'before')).toBe(1)
    expect(await migrate(database, [...MIGRATIONS, next()])).toBe(newest + 1)
    // The older program goes on as it was: it names the columns that it knows.
    expect(await write(1, 'after')).toBe(2)
    expect((await running.load()).entries.map(({ name }) => name)).toEqual(['after', 'before'])
    // And it starts again, as after a rollback: nothing is migrated back, nothing is lost.
    expect(await migrate(database)).toBe(newest + 1)
    expect(await database.query('select name, colour from registry_entry order by name', [])).toEqual([
      { name: 'after', colour: 'blue' },
      { name: 'before', colour: 'blue' },
    ])
  })

  it('ends where a step says so', async () => {
    const narrow = next({
      step: newest + 2,
      name: 'narrow',
      usableFrom: newest + 1,
      sql: 'create table narrow (id int);\n',
    })
    expect(await migrate(database, [...MIGRATIONS, next(), narrow])).toBe(newest + 2)
    await expect(migrate(database)).rejects.toThrow(
      `The database has schema step ${newest + 2}, on which programs run that know step ${newest + 1}; this version of Spillway knows ${newest}. Run a newer Spillway.`,
    )
    expect(await migrate(database, [...MIGRATIONS, next()])).toBe(newest + 2)
  })

  it('is closed for a step that does not say', async () => {
    const silent: Migration = { step: newest + 3, name: 'silent', sql: 'create table silent (id int);\n' }
    const all = [...MIGRATIONS, next(), next({ step: newest + 2, name: 'narrow' }), silent]
    await migrate(database, all)
    await expect(migrate(database, all.slice(0, -1))).rejects.toThrow('Run a newer Spillway')
  })
})
