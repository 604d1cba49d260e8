/**
 * Statements of jobs. Each is one transaction by itself, so that a process that dies leaves nothing half done. Job and
 * lines are found by their tenant first. States of a line: 0 waits, 1 runs, 2 is answered.
 */
const COLUMNS = `tenant_id, id, state, created_at_ms::float8 as created_at_ms, expires_at_ms::float8 as expires_at_ms,
  tokens::float8 as tokens, total, completed, failed, ending, body::text as body`

/** Calls that come at the very same time do not see each other's jobs: the bound may be passed by as many. */
export const ADD_JOB = `
insert into job (tenant_id, id, state, created_at_ms, expires_at_ms, body)
select $1::text, $2::text, 'validating', $3::bigint, $4::bigint, $5::jsonb
 where (select count(*) from job where tenant_id = $1::text and ended_at_ms is null) < $6::int
returning id`

export const FIND_JOB = `select ${COLUMNS} from job where tenant_id = $1 and id = $2`

/** Responses that run in the background are no batches, and the files of their requests are nobody's uploads. */
export const listJobsSql = (order: 'asc' | 'desc'): string => `
select ${COLUMNS} from job
 where tenant_id = $1 and starts_with(id, 'batch_') and ($2::text is null or ordinal ${order === 'asc' ? '>' : '<'}
   (select ordinal from job where tenant_id = $1 and id = $2))
 order by ordinal ${order} limit $3`

export const OPEN_JOBS = `
select ${COLUMNS} from job where ended_at_ms is null order by expires_at_ms, ordinal limit $1`

export const CANCEL_JOB = `
update job set state = 'cancelling', body = body || jsonb_build_object('cancelling', $3::bigint)
 where tenant_id = $1 and id = $2 and state in ('validating', 'in_progress')
returning ${COLUMNS}`

/** An owner that is gone holds nothing. */
export const HOLD_JOB = `
update job set owner = $3::text
 where tenant_id = $1 and id = $2 and state = $4
   and (owner is null or owner = $3::text
     or not exists (select from job_owner o where o.id = job.owner and o.lease_ends_at > clock_timestamp()))
returning id`

/** Places come as three lists of numbers in one text each: 50,000 lines are quick to read that way. */
export const ADD_LINES = `
insert into job_line (tenant_id, job_id, no, at, length)
select $1::text, $2::text, g.no, g.at, g.length
  from unnest($3::int[], $4::bigint[], $5::int[]) as g (no, at, length)
on conflict do nothing`

export const BEGIN_JOB = `
with others as (
  select coalesce(sum(tokens), 0) as tokens from job where tenant_id = $1 and id <> $2 and ended_at_ms is null
)
update job set state = 'in_progress', owner = null, total = $3::int, tokens = $4::bigint,
  body = body || jsonb_build_object('in_progress', $5::bigint, 'model', $6::text)
  from others
 where tenant_id = $1 and id = $2 and state = 'validating' and others.tokens + $4::bigint <= $7::bigint
returning id`

/** Whoever wants to hear of it is told, also after a crash: the notice is written with the end itself. */
const tellAs = (
  ending: string,
): string => `insert into job_notice (tenant_id, job_id, ending, created_at_ms, next_at_ms)
select tenant_id, id, ${ending}, ended_at_ms, ended_at_ms from ended
on conflict do nothing
returning job_id as id`

export const FAIL_JOB = `
with ended as (
update job set state = 'failed', owner = null, ended_at_ms = $3::bigint, tokens = 0,
  body = body || jsonb_build_object('failed', $3::bigint, 'faults', $4::jsonb)
 where tenant_id = $1 and id = $2 and state = 'validating'
returning tenant_id, id, state, ended_at_ms)
${tellAs('state')}`

/** A job that is cancelled stays so, whatever else ends it. */
export const CLOSE_JOB = `
update job set state = 'finalizing', ending = $3::text, owner = null,
  body = body || jsonb_build_object('finalizing', $4::bigint)
 where tenant_id = $1 and id = $2 and state in ('in_progress', 'validating')
returning id`

export const END_JOB = `
with ended as (
update job set state = $3::text, owner = null, ended_at_ms = $4::bigint, tokens = 0,
  body = body || jsonb_build_object($3::text, $4::bigint, 'outputFileId', $5::text, 'errorFileId', $6::text)
 where tenant_id = $1 and id = $2 and state in ('finalizing', 'cancelling')
returning tenant_id, id, state, ended_at_ms)
${tellAs('coalesce($7::text, state)')}`

/**
 * Chosen once and before anything else: as a plain subquery it may run again for each row, and claim more than it may. The
 * chosen lines are an array, so that each is looked up in the index: a join reads every line of the job for each of them
 * where the planner has no statistics, and an embedded database never has.
 */
export const CLAIM_LINES = `
with free as materialized (
  select w.no from job_line w
   where w.tenant_id = $1 and w.job_id = $2 and w.state = 0
     and exists (select from job j where j.tenant_id = $1 and j.id = $2 and j.state = 'in_progress')
   order by w.no limit $4::int for update skip locked
)
update job_line l set state = 1, owner = $3::text, attempt = attempt + 1
 where l.tenant_id = $1 and l.job_id = $2 and l.no = any(array(select no from free))
returning l.no, l.at::float8 as at, l.length, l.attempt, l.tries`

/** The mark, the answer and the job's counts in one statement: an answer is written once, or not at all. */
export const WRITE_ANSWERS = `
with given as (
  select * from json_to_recordset($2::json)
    as g (tenant_id text, job_id text, no int, attempt int, is_error boolean, document text)
), marked as (
  update job_line l set state = 2, owner = null from given g
   where l.tenant_id = g.tenant_id and l.job_id = g.job_id and l.no = g.no
     and l.state = 1 and l.owner = $1 and l.attempt = g.attempt
  returning g.*
), kept as (
  insert into job_answer (tenant_id, job_id, no, is_error, document)
  select tenant_id, job_id, no, is_error, document from marked
), sums as (
  select tenant_id, job_id, (count(*) filter (where not is_error))::int as completed,
         (count(*) filter (where is_error))::int as failed
    from marked group by tenant_id, job_id order by tenant_id, job_id
), counted as (
  update job j set completed = j.completed + s.completed, failed = j.failed + s.failed
    from sums s where j.tenant_id = s.tenant_id and j.id = s.job_id
)
select count(*)::int as n from marked`

export const GIVE_BACK = `
update job_line l set state = 0, owner = null, tries = l.tries + g.tried
  from json_to_recordset($2::json) as g (tenant_id text, job_id text, no int, attempt int, tried int)
 where l.tenant_id = g.tenant_id and l.job_id = g.job_id and l.no = g.no
   and l.state = 1 and l.owner = $1 and l.attempt = g.attempt`

export const ANSWERS_OF = `
select no, document from job_answer
 where tenant_id = $1 and job_id = $2 and is_error = $3 and no > $4 order by no limit $5`

export const SEAL_LINES = `
update job_line set state = 0, owner = null where tenant_id = $1 and job_id = $2 and state = 1`

export const UNANSWERED = `
select no, at::float8 as at, length from job_line
 where tenant_id = $1 and job_id = $2 and state <> 2 and no > $3 order by no limit $4`

export const RENEW_LEASE = `
insert into job_owner (id, lease_ends_at) values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
on conflict (id) do update set lease_ends_at = excluded.lease_ends_at`

export const FREE_LOST = `
with gone as (
  delete from job_owner where lease_ends_at <= clock_timestamp() or id = $1
), freed as (
  update job_line l set state = 0, owner = null
   where l.state = 1 and (l.owner = $1 or not exists (
     select from job_owner o where o.id = l.owner and o.lease_ends_at > clock_timestamp()))
  returning 1
)
select count(*)::int as n from freed`

/** A notice that is being told is due again after a while: whoever told it may have died. */
export const TAKE_NOTICES = `
with due as materialized (
  select tenant_id, job_id from job_notice where next_at_ms <= $1::bigint
   order by next_at_ms limit $3::int for update skip locked
)
update job_notice n set next_at_ms = $1::bigint + $2::bigint, tries = tries + 1
  from due where n.tenant_id = due.tenant_id and n.job_id = due.job_id
returning n.tenant_id, n.job_id, n.ending, n.created_at_ms::float8 as created_at_ms, n.tries`

export const DELAY_NOTICE = 'update job_notice set next_at_ms = $3::bigint where tenant_id = $1 and job_id = $2'
export const DROP_NOTICE = 'delete from job_notice where tenant_id = $1 and job_id = $2'

export const FORGET_OTHERS = 'delete from job_owner where id <> $1'

const FILE_COLUMNS = `tenant_id, id, name, purpose, bytes::float8 as bytes, created_at_ms::float8 as created_at_ms,
  expires_at_ms::float8 as expires_at_ms`

export const ADD_FILE = `
insert into job_file (tenant_id, id, name, purpose, bytes, created_at_ms, expires_at_ms)
values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`

export const FIND_FILE = `
select ${FILE_COLUMNS} from job_file
 where tenant_id = $1 and id = $2`

export const listJobFilesSql = (order: 'asc' | 'desc'): string => `
select ${FILE_COLUMNS} from job_file
 where tenant_id = $1 and not starts_with(id, 'file-background-') and ($4::text is null or purpose = $4) and ($2::text is null or ordinal ${order === 'asc' ? '>' : '<'}
   (select ordinal from job_file where tenant_id = $1 and id = $2))
 order by ordinal ${order} limit $3`

export const REMOVE_FILE = 'delete from job_file where tenant_id = $1 and id = $2 returning id'

export const FILE_BYTES_OF = 'select coalesce(sum(bytes), 0)::float8 as bytes from job_file where tenant_id = $1'

export const EXPIRED_FILES = `
select ${FILE_COLUMNS} from job_file where expires_at_ms <= $1 order by expires_at_ms limit $2`

/** Lines and answers are of no use once a job has ended: its files have them. */
export const SWEEP_JOBS = `
with ended as (
  select tenant_id, id, ended_at_ms from job where ended_at_ms is not null order by ended_at_ms limit 1000
), lines as (
  delete from job_line l using (
    select l.tenant_id, l.job_id, l.no from job_line l join ended e on l.tenant_id = e.tenant_id and l.job_id = e.id limit $2
  ) as old where l.tenant_id = old.tenant_id and l.job_id = old.job_id and l.no = old.no
  returning 1
), answers as (
  delete from job_answer a using (
    select a.tenant_id, a.job_id, a.no from job_answer a join ended e on a.tenant_id = e.tenant_id and a.job_id = e.id limit $2
  ) as old where a.tenant_id = old.tenant_id and a.job_id = old.job_id and a.no = old.no
  returning 1
), jobs as (
  delete from job j using ended e
   where j.tenant_id = e.tenant_id and j.id = e.id and e.ended_at_ms < $1
     and not exists (select from job_line l where l.tenant_id = j.tenant_id and l.job_id = j.id)
  returning 1
)
select ((select count(*) from lines) + (select count(*) from answers) + (select count(*) from jobs))::int as n`
