import type { KeyRecord, OrgRecord, TenantRecord } from '../domain/tenancy.ts'
import type { FactsAsk, StoredFact, TenancyState, TenancyStore, TenancyWrite } from '../domain/tenancy-store.ts'
import type { Database, Row } from './database.ts'

/**
 * Orgs, tenants and keys in SQL. A write is one statement, so records and facts are stored together or not at all,
 * whenever the process dies. Its revision is part of the key of its facts, so two writers against one revision cannot
 * both succeed. Facts are only added.
 */
export class SqlTenancyStore implements TenancyStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async load(): Promise<TenancyState> {
    const rows = await this.#database.query(LOAD, [])
    const of = <R extends { readonly id: string }>(level: string): R[] =>
      rows
        .filter((row) => row['level'] === level)
        .flatMap((row) => JSON.parse(String(row['bodies'])) as R[])
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    const [orgs, tenants, keys] = [of<OrgRecord>('org'), of<TenantRecord>('tenant'), of<KeyRecord>('key')]
    return { revision: Number(rows[0]?.['revision'] ?? 0), orgs, tenants, keys }
  }

  async revision(): Promise<number> {
    const [row] = await this.#database.query(`select (${REVISION})::int as revision`, [])
    return Number(row?.['revision'] ?? 0)
  }

  async write({ expectedRevision, facts }: TenancyWrite): Promise<number | 'stale'> {
    const given = facts.map(({ before, after, level, ...story }) => ({
      level,
      id: (after ?? before)?.id,
      before: before ?? null,
      after: after ?? null,
      story,
    }))
    try {
      const rows = await this.#database.query(WRITE, [
        JSON.stringify(given).replaceAll('\\u0000', ''),
        expectedRevision,
      ])
      return rows.length === facts.length ? expectedRevision + 1 : 'stale'
    } catch (error) {
      if ((error as { code?: string }).code === UNIQUE_VIOLATION) return 'stale'
      throw error
    }
  }

  async since(revision: number, limit: number): Promise<readonly StoredFact[]> {
    const rows = await this.#database.query(
      `select ${FACT} from tenancy_fact as fact where fact.revision > $1 order by fact.revision, fact.ordinal limit $2`,
      [revision, limit],
    )
    return rows.map(toFact)
  }

  async noteUses(noted: {
    readonly uses: ReadonlyMap<string, number>
    readonly gone: readonly string[]
  }): Promise<void> {
    const { uses, gone } = noted
    await this.#database.query(NOTE_USES, [JSON.stringify(Object.fromEntries(uses)), JSON.stringify(gone)])
  }

  async usesOf(hashes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.query(
      `select secret_use.hash, used_at_ms::text as used_at_ms
         from secret_use join jsonb_array_elements_text($1::jsonb) as asked (hash) on secret_use.hash = asked.hash`,
      [JSON.stringify(hashes)],
    )
    return new Map(rows.map((row) => [String(row['hash']), Number(row['used_at_ms'])]))
  }

  async history({ id, level, orgId, limit }: FactsAsk): Promise<readonly StoredFact[]> {
    // Conditions that are not asked for are left out, so that the ones that are can use their index.
    const asked = [
      { sql: 'fact.id = $?', value: id },
      { sql: 'fact.level = $?', value: level },
      { sql: `fact.story->>'orgId' = $? and fact.revision >= (${ORG_MADE})`, value: orgId },
    ].filter(({ value }) => value !== undefined)
    const conditions = asked.map(({ sql }, i) => sql.replaceAll('$?', `$${i + 2}`))
    const rows = await this.#database.query(
      `select ${FACT} from tenancy_fact as fact ${conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`}
        order by fact.revision desc, fact.ordinal desc limit $1`,
      [limit, ...asked.map(({ value }) => value ?? null)],
    )
    return rows.map(toFact)
  }
}

/** Two gateways may have seen the same secret: the later use stays. Rows in one order, so that they do not lock each other. */
const NOTE_USES = `
with gone as (
  delete from secret_use using jsonb_array_elements_text($2::jsonb) as removed (hash)
   where secret_use.hash = removed.hash
)
insert into secret_use (hash, used_at_ms)
select key, value::bigint from jsonb_each_text($1::jsonb) order by key
on conflict (hash) do update set used_at_ms = greatest(secret_use.used_at_ms, excluded.used_at_ms)`

const UNIQUE_VIOLATION = '23505'

const REVISION = 'select coalesce(max(revision), 0) from tenancy_fact'

/** The revision that made an org; 0 for orgs of the configuration file. */
const ORG_MADE = `select coalesce(max(made.revision), 0) from tenancy_fact as made
  where made.id = $? and made.level = 'org' and made.before is null`

/**
 * One statement, so that records and revision belong together. Records come in some hundred long rows: 200,000 short
 * ones take three times as long on their way from the embedded database.
 */
const LOAD = `
select (${REVISION})::int as revision, level, bodies
  from (select 1) as once
  left join (
    select level, '[' || string_agg(body::text, ',') || ']' as bodies
      from tenancy_record group by level, hashtext(id) & 255
  ) as parts on true`

/** Order by `fact.revision`: the bare name would be the number made here, which no index has, and every fact be read. */
const FACT = `fact.revision::int as revision, fact.level, fact.story::text as story, fact.before::text as before,
  fact.after::text as after`

/** Writes nothing when the revision is another one. */
const WRITE = `
with given as (
  select ordinal::int as ordinal, item->>'level' as level, item->>'id' as id, item->'story' as story,
         nullif(item->'before', 'null'::jsonb) as before, nullif(item->'after', 'null'::jsonb) as after
    from jsonb_array_elements($1::jsonb) with ordinality as list (item, ordinal)
   where $2::bigint = (${REVISION})
), put as (
  insert into tenancy_record (level, id, body)
  select level, id, after from given where after is not null
  on conflict (level, id) do update set body = excluded.body
), removed as (
  delete from tenancy_record using given
   where tenancy_record.level = given.level and tenancy_record.id = given.id and given.after is null
)
insert into tenancy_fact (revision, ordinal, level, id, story, before, after)
select $2::bigint + 1, ordinal, level, id, story, before, after from given
returning revision`

function toFact(row: Row): StoredFact {
  const bodyOf = (text: unknown): unknown => (typeof text === 'string' ? JSON.parse(text) : undefined)
  return {
    ...(JSON.parse(String(row['story'])) as object),
    level: row['level'],
    before: bodyOf(row['before']),
    after: bodyOf(row['after']),
    revision: Number(row['revision']),
  } as StoredFact
}
