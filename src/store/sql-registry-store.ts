import type { Fence } from '../domain/leader.ts'
import type {
  HistoryAsk,
  RegistryBody,
  RegistryChange,
  RegistryEntry,
  RegistryKind,
  RegistryState,
  RegistryStore,
  RegistryWrite,
} from '../domain/registry.ts'
import type { Database, Row } from './database.ts'
import { fenceParameters, heldFence } from './sql-leader-store.ts'

/**
 * The registry in SQL. A write is one statement, so it is stored completely or not at all. Its revision is the key of
 * the first of its changes, so two writers against one revision cannot both succeed. Changes are only added.
 */
export class SqlRegistryStore implements RegistryStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async load(): Promise<RegistryState> {
    // One statement, so that entries and revision belong together.
    const rows = await this.#database.query(
      `select kind, name, body::text as body, (${REVISION})::int as revision
         from (select 1) as once left join registry_entry on true
        order by kind collate "C", name collate "C"`,
      [],
    )
    const entries = rows.filter((row) => row['kind'] !== null).map(toEntry)
    return { revision: Number(rows.at(-1)?.['revision'] ?? 0), entries }
  }

  async revision(): Promise<number> {
    const [row] = await this.#database.query(`select (${REVISION})::int as revision`, [])
    return Number(row?.['revision'] ?? 0)
  }

  async write({
    expectedRevision,
    atMs,
    by,
    because,
    edits,
    fence,
  }: RegistryWrite): Promise<number | 'stale' | 'deposed'> {
    const given = edits.map(({ kind, name, body }) => ({ kind, name, body: body ?? null }))
    try {
      const rows = await this.#database.query(WRITE, [
        JSON.stringify(given).replaceAll('\\u0000', ''),
        expectedRevision,
        atMs,
        by,
        because,
        ...fenceParameters(fence),
      ])
      if (rows.length === edits.length) return expectedRevision + 1
      return fence !== undefined && !(await this.#isHeld(fence)) ? 'deposed' : 'stale'
    } catch (error) {
      if ((error as { code?: string }).code === UNIQUE_VIOLATION) return 'stale'
      throw error
    }
  }

  async #isHeld(fence: Fence): Promise<boolean> {
    const rows = await this.#database.query(heldFence(1), fenceParameters(fence))
    return rows.length > 0
  }

  async history({ name, poolIds = [], limit }: HistoryAsk): Promise<readonly RegistryChange[]> {
    const rows = await this.#database.query(
      `select revision::int as revision, at_ms::float8 as at_ms, by, because, kind, name,
              before::text as before, after::text as after
         from registry_change
        where $1::text is null or name = $1 or starts_with(name, $1 || '@')
           or (kind = 'pool' and $1 in (before->>'model', after->>'model'))
           or (kind = 'replica' and $1 in (before->>'pool', after->>'pool'))
           or (kind = 'replica' and ($3::jsonb ? (before->>'pool') or $3::jsonb ? (after->>'pool')))
        order by revision desc, ordinal desc limit $2`,
      [name ?? null, limit, JSON.stringify(poolIds)],
    )
    return rows.map((row) => ({
      revision: Number(row['revision']),
      atMs: Number(row['at_ms']),
      by: String(row['by']),
      because: String(row['because']),
      kind: row['kind'] as RegistryKind,
      name: String(row['name']),
      before: bodyOf(row['before']),
      after: bodyOf(row['after']),
    }))
  }
}

const UNIQUE_VIOLATION = '23505'

const REVISION = 'select coalesce(max(revision), 0) from registry_change'

/** Writes nothing when the revision is another one, or when a fence was given that does not hold. */
const WRITE = `
with held as (${heldFence(6)}
), given as (
  select ordinal::int as ordinal, item->>'kind' as kind, item->>'name' as name,
         case when item->'body' = 'null'::jsonb then null else item->'body' end as body
    from jsonb_array_elements($1::jsonb) with ordinality as list (item, ordinal)
   where $2::bigint = (${REVISION}) and ($6::text is null or exists (select from held))
), put as (
  insert into registry_entry (kind, name, body)
  select kind, name, body from given where body is not null
  on conflict (kind, name) do update set body = excluded.body
), removed as (
  delete from registry_entry using given
   where registry_entry.kind = given.kind and registry_entry.name = given.name and given.body is null
)
insert into registry_change (revision, ordinal, at_ms, by, because, kind, name, before, after)
select $2::bigint + 1, given.ordinal, $3::bigint, $4, $5, given.kind, given.name, known.body, given.body
  from given left join registry_entry known on known.kind = given.kind and known.name = given.name
returning revision`

function toEntry(row: Row): RegistryEntry {
  return { kind: row['kind'] as RegistryKind, name: String(row['name']), body: bodyOf(row['body']) ?? {} }
}

const bodyOf = (text: unknown): RegistryBody | undefined =>
  typeof text === 'string' ? (JSON.parse(text) as RegistryBody) : undefined
