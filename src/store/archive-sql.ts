/** Statements of the archive. Triggers keep `archive_total` true (`migrations.ts`), whichever process runs them. */

const ANSWER = `a.tenant_id, a.id, a.kind, a.created_at_ms::float8 as created_at_ms,
  a.expires_at_ms::float8 as expires_at_ms, a.model, a.metadata::text as metadata, a.previous_id, a.document`

/** What a row takes beside its texts, about; as in `domain/archive.ts`. */
const ROW_BYTES = 256

const bytesOf = (row: string): string =>
  `octet_length(${row}.document) + octet_length(${row}.input) + octet_length(${row}.metadata::text) + ${ROW_BYTES}`

/** $1 tenant, $2 answers as JSON. An id that is there is replaced. */
export const PUT = `
insert into archived_answer (tenant_id, id, kind, created_at_ms, expires_at_ms, model, metadata, previous_id, document,
  input, bytes)
select $1::text, g.id, g.kind, g.created_at_ms, g.expires_at_ms, g.model, g.metadata, g.previous_id, g.document, g.input,
       ${bytesOf('g')}
  from json_to_recordset($2::json) as g (id text, kind text, created_at_ms bigint, expires_at_ms bigint, model text,
    metadata jsonb, previous_id text, document text, input text)
on conflict (tenant_id, id) do update
  set kind = excluded.kind, created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms,
      model = excluded.model, metadata = excluded.metadata, previous_id = excluded.previous_id,
      document = excluded.document, input = excluded.input, bytes = excluded.bytes`

export const TOTAL = 'select answers, bytes::float8 as bytes from archive_total where tenant_id = $1::text'

/** $1 tenant, $2 kind, $3 id, $4 now. */
const IS_THERE = 'a.tenant_id = $1::text and a.kind = $2::text and a.id = $3::text and a.expires_at_ms > $4::bigint'

export const FIND = `select ${ANSWER}, a.input from archived_answer a where ${IS_THERE}`

/** Oldest first. `goes_on`: the answer before the oldest one is there, but one chain may not have more. */
export const CHAIN = `
with recursive chain as (
  select a.id, a.previous_id, 1 as depth, a.bytes::bigint as total from archived_answer a where ${IS_THERE}
  union all
  select a.id, a.previous_id, c.depth + 1, c.total + a.bytes
    from chain c join archived_answer a on a.tenant_id = $1::text and a.id = c.previous_id
   where a.kind = $2::text and a.expires_at_ms > $4::bigint and c.depth < $5::int and c.total + a.bytes <= $6::bigint
)
select ${ANSWER}, a.input,
       exists (select from archived_answer p where p.tenant_id = $1::text and p.id = a.previous_id
          and p.kind = $2::text and p.expires_at_ms > $4::bigint) as goes_on
  from chain c join archived_answer a on a.tenant_id = $1::text and a.id = c.id
 order by c.depth desc`

/** $1 tenant, $2 kind, $3 after, $4 now, $5 model, $6 metadata, $7 limit, $8 bytes. The first answer always fits. */
export const listSql = (order: 'asc' | 'desc'): string => `
with page as (
  select a.id, a.created_at_ms, a.bytes from archived_answer a
   where a.tenant_id = $1::text and a.kind = $2::text and a.expires_at_ms > $4::bigint
     and ($5::text is null or a.model = $5::text) and a.metadata @> $6::jsonb
     and ($3::text is null or (a.created_at_ms, a.id) ${order === 'asc' ? '>' : '<'}
       (select b.created_at_ms, b.id from archived_answer b
         where b.tenant_id = $1::text and b.kind = $2::text and b.id = $3::text))
   order by a.created_at_ms ${order}, a.id ${order} limit $7::int + 1
), fitting as (
  select id, row_number() over by_age as n, sum(bytes) over by_age as total
    from page window by_age as (order by created_at_ms ${order}, id ${order})
)
select ${ANSWER}, (select count(*)::int from page) as found
  from fitting f join archived_answer a on a.tenant_id = $1::text and a.id = f.id
 where f.n <= $7::int and (f.n = 1 or f.total <= $8::bigint)
 order by f.n`

/** A page may go on from an answer whose time has ended meanwhile. */
export const KNOWS =
  'select 1 as one from archived_answer where tenant_id = $1::text and kind = $2::text and id = $3::text'

/** $5 metadata. */
export const CHANGE_METADATA = `
update archived_answer a
   set metadata = $5::jsonb,
       bytes = a.bytes + octet_length($5::jsonb::text) - octet_length(a.metadata::text)
 where ${IS_THERE}
returning ${ANSWER}, a.input`

/** An answer whose time is over is erased too, but was not there. */
export const REMOVE = `
delete from archived_answer a where a.tenant_id = $1::text and a.kind = $2::text and a.id = $3::text
returning (a.expires_at_ms > $4::bigint) as was_there`

/** $1 tenant, $2 answers and $3 bytes at most, $4 limit. An answer goes while those older than it do not suffice. */
export const MAKE_ROOM = `
with oldest as (
  select id, created_at_ms, bytes from archived_answer
   where tenant_id = $1::text order by created_at_ms, id limit $4::int
), ranked as (
  select id, row_number() over by_age - 1 as answers_before, sum(bytes) over by_age - bytes as bytes_before
    from oldest window by_age as (order by created_at_ms, id)
), gone as (
  delete from archived_answer a using ranked r, archive_total t
   where a.tenant_id = $1::text and a.id = r.id and t.tenant_id = $1::text
     and (t.answers - r.answers_before > $2::int or t.bytes - r.bytes_before > $3::bigint)
  returning 1
)
select count(*)::int as n from gone`

/** $1 now, $2 limit. Several gateways may sweep at once: each takes other rows. */
export const SWEEP = `
with ended as (
  select tenant_id, id from archived_answer where expires_at_ms <= $1::bigint
   order by expires_at_ms limit $2::int for update skip locked
), gone as (
  delete from archived_answer a using ended where a.tenant_id = ended.tenant_id and a.id = ended.id
  returning 1
)
select count(*)::int as n from gone`

/** $1 tenant, $2 begun before, $3 limit. */
export const ERASE_TENANT = `
with part as (
  select id from archived_answer where tenant_id = $1::text and created_at_ms < $2::bigint limit $3::int
), gone as (
  delete from archived_answer a using part where a.tenant_id = $1::text and a.id = part.id
  returning 1
)
select count(*)::int as n from gone`

/** A tenant without answers leaves no trace. */
export const FORGET_TOTALS = 'delete from archive_total where answers <= 0 and tenant_id = $1::text'

export const TENANTS = `
select tenant_id, answers, bytes::float8 as bytes, last_written_at_ms::float8 as last_written_at_ms
  from archive_total where tenant_id > $1::text and answers > 0 order by tenant_id limit $2::int`
