import { detailOf } from '../base/detail-of.ts'
import { type Database, DatabaseUnavailable } from './database.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'

/**
 * Migrates a database to the newest schema, forward only. Several processes may start at once: one takes the lock, the
 * others wait and find the work done. A database newer than this program is left alone and reported, because an old
 * program must not write into a schema that it does not know.
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
  let done = await lastStep(database)
  if (done > newest) {
    throw new DatabaseUnavailable(
      `The database has schema step ${done}, but this version of Spillway knows ${newest}. Run a newer Spillway.`,
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
  (step int primary key, name text not null, done_at timestamptz not null default now());`

/** Even "if not exists" fails when two processes create the same thing at the same time. */
const underLock = (statement: string): string =>
  `do $migrate$ begin perform pg_advisory_xact_lock(${LOCK}); ${statement} end $migrate$;`

/** The step is checked again under the lock: another process may have been faster. */
async function runStep(database: Database, { step, name, sql }: Migration): Promise<void> {
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
    insert into schema_step (step, name) values (${step}, '${name}');
  end if;
end $migrate$;`,
    { msMax: STEP_MS_MAX },
  )
}

async function lastStep(database: Database): Promise<number> {
  const [row] = await database.query('select coalesce(max(step), 0)::int as step from schema_step', [])
  return Number(row?.['step'] ?? 0)
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
