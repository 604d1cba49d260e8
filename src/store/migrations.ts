import { AUDIT_SCHEMA } from './audit-schema.ts'
import { JOBS_SCHEMA } from './jobs-schema.ts'
import { MESSAGES_SCHEMA } from './messages-schema.ts'
import { SECONDS_SCHEMA } from './seconds-schema.ts'

/**
 * The schema of the store, as steps that only go forward. A released step is never changed; the next step corrects it.
 * Every step runs on PGlite and on PostgreSQL 15 and later with pgvector 0.7 and later; a step and its mark in
 * `schema_step` are one transaction.
 *
 * Tenants' data has the tenant as the first column of every key and of every foreign key, so that a row cannot refer to
 * another tenant's row.
 */
export interface Migration {
  readonly step: number
  readonly name: string
  readonly sql: string
  /**
   * The oldest step whose programs run on the schema after this one; the step itself if absent. Steps after 13 name the one
   * before at least, so that two versions can run side by side: they only add. What is no longer used goes a step later,
   * after a comment that says since when (`-- unused since step 14`). `test/contract/migration-window.test.ts` looks.
   */
  readonly usableFrom?: number
}

const CORPORA = `
create table corpus (
  tenant_id text not null,
  id text not null,
  name text not null,
  version bigint not null default 1,
  deletions bigint not null default 0,
  embedder text not null,
  dimensions int not null,
  passages int not null default 0,
  bytes bigint not null default 0,
  metadata jsonb not null default '{}',
  created_at_s bigint not null,
  ordinal bigint generated always as identity,
  primary key (tenant_id, id),
  unique (tenant_id, name)
);

create table document (
  tenant_id text not null,
  corpus_id text not null,
  id text not null,
  name text not null,
  hash text not null,
  body text not null,
  bytes int not null,
  status text not null default 'in-progress' check (status in ('in-progress', 'completed', 'failed', 'cancelled')),
  because text,
  passages int not null default 0,
  embedded int not null default 0,
  is_split boolean not null default false,
  attributes jsonb not null default '{}',
  created_at_s bigint not null,
  ordinal bigint generated always as identity,
  primary key (tenant_id, corpus_id, id),
  unique (tenant_id, corpus_id, hash),
  foreign key (tenant_id, corpus_id) references corpus (tenant_id, id) on delete cascade
);
create index document_by_status on document (tenant_id, corpus_id, status);
create index document_unfinished on document (ordinal) where status = 'in-progress';

-- Two tables for one passage: a search reads the narrow one, and only what it found is read from the wide one.
create table passage (
  tenant_id text not null,
  corpus_id text not null,
  document_id text not null,
  position int not null,
  id bigint generated always as identity primary key,
  body text not null,
  tokens int not null,
  unique (tenant_id, corpus_id, document_id, position),
  foreign key (tenant_id, corpus_id, document_id) references document (tenant_id, corpus_id, id) on delete cascade
);

create table passage_index (
  passage_id bigint primary key references passage (id) on delete cascade,
  tenant_id text not null,
  corpus_id text not null,
  document_id text not null,
  -- Ids are salted with the corpus (see analyse-text.ts), so one list never holds passages of two corpora.
  terms int[] not null,
  weights sparsevec(1000000000) not null,
  dimensions int not null,
  embedding halfvec
);
create index passage_index_by_corpus on passage_index (tenant_id, corpus_id);
create index passage_index_terms on passage_index using gin (terms) with (fastupdate = off);

create table term (
  tenant_id text not null,
  corpus_id text not null,
  id int not null,
  passages int not null,
  primary key (tenant_id, corpus_id, id),
  foreign key (tenant_id, corpus_id) references corpus (tenant_id, id) on delete cascade
);

create table file (
  tenant_id text not null,
  id text not null,
  name text not null,
  purpose text not null,
  body text not null,
  bytes int not null,
  created_at_s bigint not null,
  ordinal bigint generated always as identity,
  primary key (tenant_id, id)
);
`

/**
 * The registry belongs to the platform, not to a tenant. Bodies have the format of the configuration file and are
 * checked by its schema: a second schema in SQL would drift from it.
 */
const REGISTRY = `
create table registry_entry (
  kind text not null,
  name text not null,
  body jsonb not null,
  primary key (kind, name)
);

create table registry_change (
  revision bigint not null,
  ordinal int not null,
  at_ms bigint not null,
  by text not null,
  because text not null,
  kind text not null,
  name text not null,
  before jsonb,
  after jsonb,
  primary key (revision, ordinal)
);
create index registry_change_by_name on registry_change (name);
`

/**
 * Vectors in their own table. Beside the terms they made each row five times as wide as a search by words needs, and
 * writing a vector moved the row, so that every list of its terms was written again. Moved tables must be analysed, or
 * the planner takes them for empty.
 */
const VECTORS_APART = `
create table passage_vector (
  passage_id bigint primary key references passage (id) on delete cascade,
  tenant_id text not null,
  corpus_id text not null,
  document_id text not null,
  dimensions int not null,
  embedding halfvec not null
);
insert into passage_vector
  select passage_id, tenant_id, corpus_id, document_id, dimensions, embedding from passage_index where embedding is not null;
create index passage_vector_by_corpus on passage_vector (tenant_id, corpus_id);
alter table passage_index drop column embedding, drop column dimensions;
do $each$ declare n int; begin for n in select distinct dimensions from corpus loop execute format('create index passage_vector_%s on passage_vector using hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) where dimensions = %s', n, n, n); end loop; end $each$;
analyze passage_index, passage_vector;
`

/** What was learned of engines, one row a replica: the newest counts, and old ones are swept when others are written. */
const TWINS = `
create table twin_memory (
  replica_id text primary key,
  pool_id text not null,
  body jsonb not null,
  kept_at_ms bigint not null
);
`

/**
 * Orgs, tenants and keys that were made at run time, and every change of them. Who and why are one value: nothing is
 * searched by them.
 */
const TENANCY = `
create table tenancy_record (
  level text not null,
  id text not null,
  body jsonb not null,
  primary key (level, id)
);

create table tenancy_fact (
  revision bigint not null,
  ordinal int not null,
  level text not null,
  id text not null,
  story jsonb not null,
  before jsonb,
  after jsonb,
  primary key (revision, ordinal)
);
create index tenancy_fact_by_id on tenancy_fact (id);
`

/**
 * Answers that clients asked to store. Documents are JSON text and not `jsonb`, because a client gets back what it was
 * sent, to the letter; NUL, which PostgreSQL's texts cannot have, is escaped in JSON. What a tenant has in all is
 * counted in a row of its own, because counting ten thousand answers at every write would cost more than the write. The
 * triggers count what a statement has really done: two writers of one new id would both take it for theirs otherwise.
 */
const ARCHIVE = `
create table archived_answer (
  tenant_id text not null,
  id text collate "C" not null,
  kind text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  model text not null,
  metadata jsonb not null,
  previous_id text collate "C",
  document text not null,
  input text not null,
  bytes int not null,
  primary key (tenant_id, id)
);
create index archived_answer_by_age on archived_answer (tenant_id, created_at_ms, id);
create index archived_answer_by_end on archived_answer (expires_at_ms);

create table archive_total (
  tenant_id text collate "C" primary key,
  answers int not null,
  bytes bigint not null,
  last_written_at_ms bigint not null
);

create or replace function archive_added() returns trigger language plpgsql as $body$ begin insert into archive_total as t (tenant_id, answers, bytes, last_written_at_ms) select tenant_id, count(*), sum(bytes), max(created_at_ms) from added group by tenant_id order by tenant_id on conflict (tenant_id) do update set answers = t.answers + excluded.answers, bytes = t.bytes + excluded.bytes, last_written_at_ms = greatest(t.last_written_at_ms, excluded.last_written_at_ms); return null; end $body$;
create or replace function archive_changed() returns trigger language plpgsql as $body$ begin update archive_total t set bytes = t.bytes + d.bytes from (select tenant_id, sum(bytes) as bytes from (select tenant_id, bytes from added union all select tenant_id, -bytes from removed) as each group by tenant_id) as d where t.tenant_id = d.tenant_id; return null; end $body$;
create or replace function archive_removed() returns trigger language plpgsql as $body$ begin perform from archive_total where tenant_id in (select tenant_id from removed) order by tenant_id for update; update archive_total t set answers = t.answers - d.answers, bytes = t.bytes - d.bytes from (select tenant_id, count(*) as answers, sum(bytes) as bytes from removed group by tenant_id) as d where t.tenant_id = d.tenant_id; return null; end $body$;
create trigger archive_added after insert on archived_answer referencing new table as added for each statement execute function archive_added();
create trigger archive_changed after update on archived_answer referencing new table as added old table as removed for each statement execute function archive_changed();
create trigger archive_removed after delete on archived_answer referencing old table as removed for each statement execute function archive_removed();
`

/**
 * When secrets were used last, apart from their records: a use is no change. And the history of one org, which its own
 * administrators read.
 */
const SECRET_USES = `
create table secret_use (
  hash text primary key,
  used_at_ms bigint not null
);
create index tenancy_fact_by_org on tenancy_fact ((story->>'orgId'), revision, ordinal);
`

/** The history of one id, newest first: with the id alone, a planner without statistics reads the whole history. */
const HISTORY_OF_IDS = `
create index tenancy_fact_of_id on tenancy_fact (id, revision, ordinal);
drop index tenancy_fact_by_id;
`

/**
 * The ledger: a line per ticket, and sums that outlive the lines. A line's hour is that of its ticket's end. Money is in
 * whole nano-dollars.
 */
const LEDGER = `
create table settlement (
  ticket_id text collate "C" primary key,
  at_ms bigint not null,
  org text not null,
  tenant text not null,
  key text not null,
  end_user text not null,
  model text not null,
  release text not null,
  outcome text not null,
  input bigint not null,
  cached bigint not null,
  output bigint not null,
  price_nano bigint not null,
  price_version text not null,
  cost_nano bigint not null,
  prefill_us bigint not null,
  decode_us bigint not null,
  kv_block_ms bigint not null,
  batching_saved_nano bigint not null,
  cache_saved_nano bigint not null
);
create index settlement_by_end on settlement using brin (at_ms);

create table usage_hour (
  org text collate "C" not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  model text collate "C" not null,
  hour int not null,
  requests bigint not null,
  input bigint not null,
  cached bigint not null,
  output bigint not null,
  price_nano bigint not null,
  cost_nano bigint not null,
  prefill_us bigint not null,
  decode_us bigint not null,
  kv_block_ms bigint not null,
  batching_saved_nano bigint not null,
  cache_saved_nano bigint not null,
  primary key (org, tenant, key, model, hour)
);
create index usage_hour_by_hour on usage_hour (hour);

create table balance (
  scope text collate "C" not null,
  hour int not null,
  requests bigint not null,
  input bigint not null,
  cached bigint not null,
  output bigint not null,
  price_nano bigint not null,
  cost_nano bigint not null,
  primary key (scope, hour)
);
`

/**
 * Several gateways on one store: who leads, who is there, what each has seen of a release that is tried, and what one
 * asks the others. A notice says that there is something to read; what it is, is read. Whatever writes tells the others,
 * a person with psql included, because the triggers do it.
 */
const GATEWAYS = `
create table leader (
  name text primary key,
  holder text not null,
  fence bigint not null,
  expires_at timestamptz not null
);

create table gateway (
  id text primary key,
  heard_at timestamptz not null
);

-- Totals since a trial began, so that a write that is late, lost or repeated counts once.
create table rollout_tally (
  model text not null,
  gateway_id text not null,
  serial bigint not null,
  body jsonb not null,
  heard_at timestamptz not null,
  primary key (model, gateway_id)
);

create table gateway_question (
  id text primary key,
  kind text not null,
  body jsonb not null,
  asked_by text not null,
  asked_at timestamptz not null
);

create table gateway_answer (
  question_id text not null references gateway_question (id) on delete cascade,
  gateway_id text not null,
  body text not null,
  primary key (question_id, gateway_id)
);

create or replace function tell_gateways() returns trigger language plpgsql as $body$ begin perform pg_notify('spillway', TG_ARGV[0]); return null; end $body$;
create trigger registry_changed after insert on registry_change for each statement execute function tell_gateways('registry');
create trigger tenancy_changed after insert on tenancy_fact for each statement execute function tell_gateways('tenancy');
create trigger gateway_asked after insert on gateway_question for each statement execute function tell_gateways('question');
create trigger gateway_answered after insert on gateway_answer for each statement execute function tell_gateways('answer');
`

/** What the gateways of a database have in common and nobody else knows. */
const CELL_SECRETS = `
create table cell_secret (
  name text primary key,
  secret text not null
);
`

export const MIGRATIONS: readonly Migration[] = [
  { step: 1, name: 'corpora', sql: CORPORA },
  { step: 2, name: 'registry', sql: REGISTRY },
  { step: 3, name: 'vectors apart', sql: VECTORS_APART },
  { step: 4, name: 'twins', sql: TWINS },
  { step: 5, name: 'tenancy', sql: TENANCY },
  { step: 6, name: 'archive', sql: ARCHIVE },
  { step: 7, name: 'secret uses', sql: SECRET_USES },
  { step: 8, name: 'history of ids', sql: HISTORY_OF_IDS },
  { step: 9, name: 'ledger', sql: LEDGER },
  { step: 10, name: 'gateways', sql: GATEWAYS },
  { step: 11, name: 'seconds', sql: SECONDS_SCHEMA },
  { step: 12, name: 'audit', sql: AUDIT_SCHEMA },
  { step: 13, name: 'jobs', sql: JOBS_SCHEMA },
  { step: 14, name: 'cell secrets', sql: CELL_SECRETS, usableFrom: 13 },
  { step: 15, name: 'messages', sql: MESSAGES_SCHEMA, usableFrom: 14 },
]
