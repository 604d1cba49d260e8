import type { KeptTwin } from '../lifecycle/ports.ts'
import type { Database } from './database.ts'

/** What was learned of engines, in SQL. Reads and writes are one statement each. */

/** Replicas whose memories are kept: the newest, so that replicas that are gone make room. */
const REPLICAS_MAX = 4_096
/** Milliseconds after which a memory is older than most engines: 30 days. */
const AGE_MS_MAX = 30 * 86_400_000

export interface StoredTwin {
  readonly replicaId: string
  /** As it was written; whoever reads it checks it. */
  readonly memory: unknown
}

export class SqlTwinStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The newest first. */
  async load(): Promise<readonly StoredTwin[]> {
    const rows = await this.#database.query(
      `select replica_id, body::text as body from twin_memory order by kept_at_ms desc, replica_id limit ${REPLICAS_MAX}`,
      [],
    )
    return rows.map((row) => ({ replicaId: String(row['replica_id']), memory: JSON.parse(String(row['body'])) }))
  }

  async write(atMs: number, kept: readonly KeptTwin[]): Promise<void> {
    const rows = kept.map(({ poolId, replicaId, memory }) => ({ pool_id: poolId, replica_id: replicaId, body: memory }))
    await this.#database.query(WRITE, [JSON.stringify(rows).replaceAll('\\u0000', ''), atMs, atMs - AGE_MS_MAX])
  }
}

/** All parts see the table as it was before: rows that are written now are not counted among those that are swept. */
const WRITE = `
with given as (
  select * from jsonb_to_recordset($1::jsonb) as given (replica_id text, pool_id text, body jsonb)
), swept as (
  delete from twin_memory where replica_id in (
    select replica_id from twin_memory
     where replica_id not in (select replica_id from given)
     order by kept_at_ms desc, replica_id offset greatest(0, ${REPLICAS_MAX} - (select count(*) from given))
  ) or (kept_at_ms < $3 and replica_id not in (select replica_id from given))
)
insert into twin_memory (replica_id, pool_id, body, kept_at_ms)
  select replica_id, pool_id, body, $2 from given
  on conflict (replica_id) do update
    set pool_id = excluded.pool_id, body = excluded.body, kept_at_ms = excluded.kept_at_ms`
