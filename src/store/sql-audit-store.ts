import type { AuditCopyStore, AuditSearch, CopiedEvent } from '../domain/audit-copy.ts'
import type { Database, Row } from './database.ts'

/** The searchable copy of the audit in SQL. One statement writes a batch; its key makes a batch that comes again harmless. */
const LANE = '/audit'

const WRITE = `
insert into audit_event (origin, seq, at_ms, kind, org, tenant, request, seals, line)
select origin, seq, at_ms, kind, org, tenant, request,
       array(select json_array_elements_text(seals)), line
  from json_to_recordset($1::json) as given (origin text, seq bigint, at_ms bigint, kind text, org text, tenant text,
    request text, seals json, line text)
 order by origin, seq
on conflict (origin, seq) do nothing`

const SEARCH = `
select origin, seq::text, at_ms::text, kind, org, tenant, request, array_to_json(seals)::text as seals, line
  from audit_event as e
 where at_ms >= $1::bigint and at_ms < $2::bigint
   and ($3::text is null or org = $3) and ($4::text is null or tenant = $4)
   and ($5::text is null or kind = $5 or kind like $5 || '.%') and ($6::text is null or request = $6)
   and ($7::text is null or seals && array(select json_array_elements_text($7::json)))
   and ($8::bigint is null or (at_ms, origin, seq) < ($8::bigint, $9::text collate "C", $10::bigint))
 order by e.at_ms desc, e.origin desc, e.seq desc limit $11::int`

const PRUNE = `
with old as (select origin, seq from audit_event where at_ms < $1::bigint order by at_ms limit $2::int),
     gone as (delete from audit_event a using old where a.origin = old.origin and a.seq = old.seq returning 1)
select count(*)::int as gone from gone`

export class SqlAuditStore implements AuditCopyStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async write(events: readonly CopiedEvent[]): Promise<void> {
    if (events.length === 0) return
    const text = JSON.stringify(events.map(toRow)).replaceAll('\\u0000', '')
    await this.#database.query(WRITE, [text], { lane: LANE })
  }

  async search(search: AuditSearch): Promise<readonly CopiedEvent[]> {
    const { org = null, tenant = null, kind = null, request = null, seals, fromMs, toMs, after, limit } = search
    const within = [bounded(fromMs), bounded(toMs)]
    const page = after === undefined ? [null, null, null] : [after.atMs, after.origin, after.seq]
    const sealed = seals === undefined ? null : JSON.stringify(seals)
    const parameters = [...within, org, tenant, kind, request, sealed, ...page, limit]
    const rows = await this.#database.query(SEARCH, parameters, { lane: LANE })
    return rows.map(toEvent)
  }

  async prune(beforeMs: number, eventsMax: number): Promise<number> {
    const [row] = await this.#database.query(PRUNE, [bounded(beforeMs), eventsMax], { lane: LANE })
    return Number(row?.['gone'] ?? 0)
  }
}

/** Whole, and within what a bigint and a number both hold. */
const bounded = (ms: number): number => Math.trunc(Math.min(8.64e15, Math.max(0, ms)))

const toRow = ({ origin, seq, atMs, kind, org, tenant, request, seals, line }: CopiedEvent) => ({
  origin,
  seq,
  at_ms: atMs,
  kind,
  org: org ?? null,
  tenant: tenant ?? null,
  request: request ?? null,
  seals,
  line,
})

const toEvent = (row: Row): CopiedEvent => {
  const text = (name: string): string | undefined => (row[name] as string | null) ?? undefined
  return {
    origin: String(row['origin']),
    seq: Number(row['seq']),
    atMs: Number(row['at_ms']),
    kind: String(row['kind']),
    org: text('org'),
    tenant: text('tenant'),
    request: text('request'),
    seals: JSON.parse(String(row['seals'])) as string[],
    line: String(row['line']),
  }
}
