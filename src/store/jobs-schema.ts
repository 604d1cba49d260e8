/**
 * Jobs, their lines, answers and files. A line is a pointer into its file; its answer is a row of its own, so that the
 * rows that are claimed stay small. Owners are processes that run lines: a line of an owner without a lease is free.
 */
export const JOBS_SCHEMA = `
create table job_file (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  name text not null,
  purpose text not null,
  bytes bigint not null,
  created_at_ms bigint not null,
  expires_at_ms bigint,
  ordinal bigint generated always as identity,
  primary key (tenant_id, id)
);
create index job_file_by_order on job_file (tenant_id, ordinal);
create index job_file_by_end on job_file (expires_at_ms) where expires_at_ms is not null;

create table job_file_page (
  file_id text collate "C" not null,
  no int not null,
  bytes bytea not null,
  primary key (file_id, no)
);
alter table job_file_page alter column bytes set storage external;

create table job (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  state text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  ended_at_ms bigint,
  tokens bigint not null default 0,
  total int not null default 0,
  completed int not null default 0,
  failed int not null default 0,
  ending text,
  owner text,
  body jsonb not null,
  ordinal bigint generated always as identity,
  primary key (tenant_id, id)
);
create index job_by_order on job (tenant_id, ordinal);
create index job_open on job (expires_at_ms) where ended_at_ms is null;
create index job_ended on job (ended_at_ms) where ended_at_ms is not null;

create table job_line (
  tenant_id text collate "C" not null,
  job_id text collate "C" not null,
  no int not null,
  at bigint not null,
  length int not null,
  state smallint not null default 0,
  attempt int not null default 0,
  tries int not null default 0,
  owner text,
  primary key (tenant_id, job_id, no)
) with (fillfactor = 70);
create index job_line_waiting on job_line (tenant_id, job_id, no) where state = 0;
create index job_line_running on job_line (owner) where state = 1;

create table job_answer (
  tenant_id text collate "C" not null,
  job_id text collate "C" not null,
  no int not null,
  is_error boolean not null,
  document text not null,
  primary key (tenant_id, job_id, no)
);

-- What is still to be told about a job that has ended.
create table job_notice (
  tenant_id text collate "C" not null,
  job_id text collate "C" not null,
  ending text not null,
  created_at_ms bigint not null,
  next_at_ms bigint not null,
  tries int not null default 0,
  primary key (tenant_id, job_id)
);
create index job_notice_due on job_notice (next_at_ms);

create table job_owner (
  id text primary key,
  lease_ends_at timestamptz not null
);
`
