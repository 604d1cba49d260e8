/**
 * Seconds of replicas that several gateways use: their reports, until they are answered and the answer was heard; what
 * the owner of the seconds knows, for the next one; and what replicas cost, by hour and line.
 */
export const SECONDS_SCHEMA = `
create table second_report (
  reporter_id text collate "C" not null,
  serial bigint not null,
  body text not null,
  charges text,
  told_at timestamptz not null,
  primary key (reporter_id, serial)
);

create table second_owner (
  id int primary key check (id = 1),
  revision bigint not null,
  state text
);
insert into second_owner (id, revision, state) values (1, 0, null);

create table bill_hour (
  replica_id text collate "C" not null,
  pool_id text not null,
  hour int not null,
  seconds bigint not null,
  bill_nano bigint not null,
  tenants_nano bigint not null,
  tenants_idle_nano bigint not null,
  idle_nano bigint not null,
  waste_nano bigint not null,
  platform_nano bigint not null,
  crashed_nano bigint not null,
  late_nano bigint not null,
  primary key (replica_id, hour)
);
`
