import { detailOf } from '../base/detail-of.ts'
import { type Database, DatabaseUnavailable } from './database.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'

/**
 * Migrates a database to the newest schema, forward only. Several processes may start at once: one takes the lock, the
 * others wait and find the work done.
 *
 * Two versions run side by side while gateways are replaced, and the older one may have to come back. So every step writes
 * down from which step on programs may run on it (`usableFrom`): an older program that is within this window runs on the
 * newer schema, as it is. Beyond the window it must not write into a schema that it does not know, and says so.
 */

/** Any number, the same in every process. */
const LOCK = 7_213_046

/** Building an index over a million vectors takes minutes; the embedded database takes one for ten thousand. */
const STEP_MS_MAX = 3_600_000

/** pgvector's sparse vectors and halves came with this version. */
const PGVECTOR_MIN = [0, 7] as const

export async function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): Promise<number> {
  await needPgvector(database)
  await database.run(underLock(SCHEMA_STEP))
  const newest = migrations.at(-1)?.step ?? 0
  const { step, usableFrom } = await lastStep(database, newest)
  let done = step
  if (done > newest && usableFrom > newest) {
    throw new DatabaseUnavailable(
      `The database has schema step ${done}, on which programs run that know step ${usableFrom}; this version of ` +
        `Spillway knows ${newest}. Run a newer Spillway.`,
    )
  }
  for (const migration of migrations) {
    if (migration.step <= done) continue
    await runStep(database, migration)
    done = migration.step
  }
  return done
}

const SCHEMA_STEP = `create table if not exists schema_step
  (step int primary key, name text not null, done_at timestamptz not null default now(), usable_from int);
  if not exists (select from information_schema.columns
    where table_schema = current_schema and table_name = 'schema_step' and column_name = 'usable_from') then
    alter table schema_step add column usable_from int;
  end if;`

/** Even "if not exists" fails when two processes create the same thing at the same time. */
const underLock = (statement: string): string =>
  `do $migrate$ begin perform pg_advisory_xact_lock(${LOCK}); ${statement} end $migrate$;`

/** The step is checked again under the lock: another process may have been faster. */
async function runStep(database: Database, { step, name, sql, usableFrom = step }: Migration): Promise<void> {
  await database.run(
    `
do $migrate$ begin
  perform pg_advisory_xact_lock(${LOCK});
  if not exists (select from schema_step where step >= ${step}) then
    ${sql
      .split(/;\s*\n/)
      .map((statement) => statement.trim())
      .filter((statement) => statement.replace(/^(--.*\n?)+/g, '').trim() !== '')
      .map((statement) => `execute $statement$ ${statement.replace(/;$/, '')} $statement$;`)
      .join('\n    ')}
    insert into schema_step (step, name, usable_from) values (${step}, '${name}', ${usableFrom});
  end if;
end $migrate$;`,
    { msMax: STEP_MS_MAX },
  )
}

/** The last step, and what a program must know for all the steps after `known`. A step that does not say wants itself. */
async function lastStep(database: Database, known: number): Promise<{ step: number; usableFrom: number }> {
  const [row] = await database.query(
    `select coalesce(max(step), 0)::int as step,
            coalesce(max(coalesce(usable_from, step)) filter (where step > $1), 0)::int as usable_from
       from schema_step`,
    [known],
  )
  return { step: Number(row?.['step'] ?? 0), usableFrom: Number(row?.['usable_from'] ?? 0) }
}

async function needPgvector(database: Database): Promise<void> {
  const [available] = await database.query(
    `select default_version as version,
            (select extversion from pg_extension where extname = 'vector') as installed
       from pg_available_extensions where name = 'vector'`,
    [],
  )
  const version = ((available?.['installed'] ?? available?.['version'] ?? '') as string).trim()
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (version === '' || (major === PGVECTOR_MIN[0] && minor < PGVECTOR_MIN[1])) {
    throw new DatabaseUnavailable(
      `The PostgreSQL server ${version === '' ? 'has no pgvector' : `has pgvector ${version}`}; retrieval needs ` +
        `pgvector ${PGVECTOR_MIN.join('.')} or later. Install it on the server (Debian: postgresql-17-pgvector; ` +
        'source: https://github.com/pgvector/pgvector) and start again, or leave DATABASE_URL empty to use the ' +
        'embedded database.',
    )
  }
  if (available?.['installed'] !== null && available?.['installed'] !== undefined) return
  try {
    await database.run(underLock('create extension if not exists vector;'))
  } catch (error) {
    throw new DatabaseUnavailable(
      'pgvector is there but could not be switched on. Ask a superuser to run: create extension vector',
      detailOf(error),
    )
  }
}
