/** The searchable copy of the audit. The chain on the disk is the truth; whatever stands here can be made again from it. */
export const AUDIT_SCHEMA = `
create table audit_event (
  origin text collate "C" not null,
  seq bigint not null,
  at_ms bigint not null,
  kind text collate "C" not null,
  org text,
  tenant text,
  request text,
  seals text[] not null,
  line text not null,
  primary key (origin, seq)
);
create index audit_event_by_time on audit_event (at_ms, origin, seq);
create index audit_event_by_tenant on audit_event (tenant, at_ms, origin, seq);
create index audit_event_by_request on audit_event (request) where request is not null;
create index audit_event_by_seal on audit_event using gin (seals);
`
