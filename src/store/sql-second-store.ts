import type {
  BillHour,
  GatheredReports,
  ReportExchange,
  SecondStore,
  SecondsClosing,
  ToldCharges,
} from '../domain/second-store.ts'
import type { Database } from './database.ts'
import { fenceParameters, heldFence } from './sql-leader-store.ts'

/** Seconds of a cell in SQL, by the database's clock. Each call is one statement. */
const LANE = '/seconds'

/** Rows of gateways that are gone: they have been closed long before. */
const STALE = "interval '10 minutes'"
/** Reports in one answer: a minute of as many gateways as a cell may well have. */
const ROWS_MAX = 4_096

const SUMS = [
  'seconds',
  'bill_nano',
  'tenants_nano',
  'tenants_idle_nano',
  'idle_nano',
  'waste_nano',
  'platform_nano',
  'crashed_nano',
  'late_nano',
]

const EXCHANGE = `
with heard as (
  select value::bigint as serial from json_array_elements_text($3::json)
), forgotten as (
  delete from second_report where reporter_id = $1 and serial in (select serial from heard)
), told as (
  insert into second_report (reporter_id, serial, body, told_at)
  select $1, serial, body, clock_timestamp() from json_to_recordset($2::json) as told (serial bigint, body text)
  on conflict do nothing
), swept as (
  delete from second_report where reporter_id <> $1 and told_at < clock_timestamp() - ${STALE}
)
select serial::float8 as serial, charges from second_report
 where reporter_id = $1 and charges is not null and serial not in (select serial from heard)
 order by serial limit ${ROWS_MAX}`

const GATHER = `
select revision::float8 as revision, state, null::text as reporter_id, null::float8 as serial, null::text as body
  from second_owner
union all
(select null, null, reporter_id, serial::float8, body from second_report
  where charges is null order by told_at, serial limit ${ROWS_MAX})`

/** Two closings wait for each other at the owner's row; the second one finds another revision there. */
const CLOSE = `
with held as (${heldFence(1)}
), owner as (
  select from second_owner where revision = $4::bigint and exists (select from held) for update
), moved as (
  update second_owner set revision = revision + 1, state = $5 where exists (select from owner)
), answered as (
  update second_report r set charges = a.body
    from json_to_recordset($6::json) as a ("reporterId" text, serial bigint, body text)
   where r.reporter_id = a."reporterId" and r.serial = a.serial and exists (select from owner)
), billed as (
  insert into bill_hour as b (replica_id, pool_id, hour, ${SUMS.join(', ')})
  select replica_id, pool_id, hour, ${SUMS.join(', ')}
    from json_to_recordset($7::json) as given (replica_id text, pool_id text, hour int,
      ${SUMS.map((column) => `${column} bigint`).join(', ')})
   where exists (select from owner) order by replica_id, hour
  on conflict (replica_id, hour) do update set ${SUMS.map((column) => `${column} = b.${column} + excluded.${column}`).join(', ')}
)
select count(*)::int as closed from owner`

const BILLS = `
select replica_id, pool_id, hour, ${SUMS.map((column) => `${column}::float8 as ${column}`).join(', ')}
  from bill_hour where hour >= $1::int and hour < $2::int order by hour, replica_id collate "C"`

export class SqlSecondStore implements SecondStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async exchange({ reporterId, told, heard }: ReportExchange): Promise<readonly ToldCharges[]> {
    const parameters = [reporterId, textOf(told), textOf(heard)]
    const rows = await this.#database.query(EXCHANGE, parameters, { lane: LANE })
    return rows.map((row) => ({ serial: Number(row['serial']), body: String(row['charges']) }))
  }

  async gather(): Promise<GatheredReports> {
    const rows = await this.#database.query(GATHER, [], { lane: LANE })
    const owner = rows.find((row) => row['reporter_id'] === null)
    const state = owner?.['state']
    return {
      revision: Number(owner?.['revision'] ?? 0),
      state: typeof state === 'string' ? state : undefined,
      reports: rows
        .filter((row) => row['reporter_id'] !== null)
        .map((row) => ({
          reporterId: String(row['reporter_id']),
          serial: Number(row['serial']),
          body: String(row['body']),
        })),
    }
  }

  async close({ fence, revision, state, bills, answers }: SecondsClosing): Promise<boolean> {
    const sums = bills.map((bill) => ({
      replica_id: bill.replicaId,
      pool_id: bill.poolId,
      hour: bill.hour,
      seconds: bill.seconds,
      bill_nano: bill.billNano,
      tenants_nano: bill.tenantsNano,
      tenants_idle_nano: bill.tenantsIdleNano,
      idle_nano: bill.idleNano,
      waste_nano: bill.wasteNano,
      platform_nano: bill.platformNano,
      crashed_nano: bill.crashedNano,
      late_nano: bill.lateNano,
    }))
    const parameters = [...fenceParameters(fence), revision, state, textOf(answers), textOf(sums)]
    const [row] = await this.#database.query(CLOSE, parameters, { lane: LANE })
    return Number(row?.['closed'] ?? 0) > 0
  }

  async bills(fromHour: number, toHour: number): Promise<readonly BillHour[]> {
    const rows = await this.#database.query(BILLS, [fromHour, toHour], { lane: LANE })
    return rows.map((row) => ({
      replicaId: String(row['replica_id']),
      poolId: String(row['pool_id']),
      hour: Number(row['hour']),
      seconds: Number(row['seconds']),
      billNano: Number(row['bill_nano']),
      tenantsNano: Number(row['tenants_nano']),
      tenantsIdleNano: Number(row['tenants_idle_nano']),
      idleNano: Number(row['idle_nano']),
      wasteNano: Number(row['waste_nano']),
      platformNano: Number(row['platform_nano']),
      crashedNano: Number(row['crashed_nano']),
      lateNano: Number(row['late_nano']),
    }))
  }
}

/** The database has no NUL. */
const textOf = (value: unknown): string => JSON.stringify(value).replaceAll('\\u0000', '')
