import type { Settlement } from '../domain/ledger.ts'
import type {
  Balance,
  HourBalance,
  LedgerStore,
  UsageAsk,
  UsageDimension,
  UsageRow,
} from '../lifecycle/ledger-ports.ts'
import type { Database, Row } from './database.ts'

/**
 * The ledger in SQL: single lines, and their sums by scope and hour and by (org, tenant, key, model) and hour.
 *
 * One statement writes all three. The line's ticket is its key: only lines that were not there feed the sums, so a batch
 * that is given twice counts once. Sums are written in the order of their keys, so that two gateways that write at once
 * wait for each other and do not block each other for ever.
 */
const LANE = '/ledger'

/** An hour's sums of everything that a line counts. */
const SUMS = `count(*) as requests, sum(input) as input, sum(cached) as cached, sum(output) as output,
  sum(price_nano) as price_nano, sum(cost_nano) as cost_nano`
/** Budgets count what was sold: tokens of an answer that we lost are nobody's. */
const SOLD_SUMS = ['input', 'cached', 'output']
  .map((column) => `coalesce(sum(${column}) filter (where outcome not in ('failed', 'crashed')), 0) as ${column}`)
  .join(', ')
const MORE_SUMS = `sum(prefill_us) as prefill_us, sum(decode_us) as decode_us, sum(kv_block_ms) as kv_block_ms,
  sum(batching_saved_nano) as batching_saved_nano, sum(cache_saved_nano) as cache_saved_nano`

const added = (table: string, columns: readonly string[]): string =>
  columns.map((column) => `${column} = ${table}.${column} + excluded.${column}`).join(', ')
const COUNTED = ['requests', 'input', 'cached', 'output', 'price_nano', 'cost_nano']
const COUNTED_MORE = [...COUNTED, 'prefill_us', 'decode_us', 'kv_block_ms', 'batching_saved_nano', 'cache_saved_nano']

const COLUMNS = `ticket_id, at_ms, org, tenant, key, end_user, model, release, outcome, input, cached, output, price_nano,
  price_version, cost_nano, prefill_us, decode_us, kv_block_ms, batching_saved_nano, cache_saved_nano`

const WRITE = `
with fresh as (
  insert into settlement (${COLUMNS})
  select ${COLUMNS} from json_to_recordset($1::json) as given (ticket_id text, at_ms bigint, org text, tenant text,
    key text, end_user text, model text, release text, outcome text, input bigint, cached bigint, output bigint,
    price_nano bigint, price_version text, cost_nano bigint, prefill_us bigint, decode_us bigint, kv_block_ms bigint,
    batching_saved_nano bigint, cache_saved_nano bigint)
  order by ticket_id
  on conflict (ticket_id) do nothing
  returning *, (at_ms / 3600000)::int as hour
), cube as (
  insert into usage_hour as u (org, tenant, key, model, hour, ${COUNTED_MORE.join(', ')})
  select org, tenant, key, model, hour, ${SUMS}, ${MORE_SUMS} from fresh
   group by org, tenant, key, model, hour order by org, tenant, key, model, hour
  on conflict (org, tenant, key, model, hour) do update set ${added('u', COUNTED_MORE)}
), scoped as (
  insert into balance as b (scope, hour, ${COUNTED.join(', ')})
  select scope, hour, count(*) as requests, ${SOLD_SUMS}, sum(price_nano) as price_nano, sum(cost_nano) as cost_nano
    from fresh, lateral (values ('org:' || org), ('tenant:' || tenant), ('key:' || key),
      ('model:' || tenant || '/' || model),
      (case when end_user <> '' then 'user:' || tenant || '/' || end_user end)) as scopes (scope)
   where scope is not null group by scope, hour order by scope collate "C", hour
  on conflict (scope, hour) do update set ${added('b', COUNTED)}
)
select count(*)::int as fresh from fresh`

const BALANCES = `
select scope, sum(requests)::float8 as requests, sum(input)::float8 as input, sum(cached)::float8 as cached,
       sum(output)::float8 as output, sum(price_nano)::text as price_nano, sum(cost_nano)::text as cost_nano
  from balance
 where scope = any (select json_array_elements_text($1::json)) and hour >= $2::int and hour < $3::int
 group by scope order by scope collate "C"`

const HOURLY = BALANCES.replace('select scope,', 'select scope, hour,')
  .replace('group by scope', 'group by scope, hour')
  .replace('"C"', '"C", hour')

/** What each dimension is in SQL. A day is named by its first hour. */
const DIMENSIONS: Readonly<Record<UsageDimension, string>> = {
  org: 'org',
  tenant: 'tenant',
  key: 'key',
  model: 'model',
  day: '(hour / 24 * 24)',
  hour: 'hour',
}

export class SqlLedgerStore implements LedgerStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async write(lines: readonly Settlement[]): Promise<number> {
    if (lines.length === 0) return 0
    const text = JSON.stringify(lines.map(toRow)).replaceAll('\\u0000', '')
    const [row] = await this.#database.query(WRITE, [text], { lane: LANE })
    return Number(row?.['fresh'] ?? 0)
  }

  async balances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly Balance[]> {
    const parameters = [JSON.stringify(scopes), fromHour, toHour]
    const rows = await this.#database.query(BALANCES, parameters, { lane: LANE })
    return rows.map((row) => ({ scope: String(row['scope']), ...countsOf(row) }))
  }

  async hourlyBalances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly HourBalance[]> {
    const parameters = [JSON.stringify(scopes), fromHour, toHour]
    const rows = await this.#database.query(HOURLY, parameters, { lane: LANE })
    return rows.map((row) => ({ scope: String(row['scope']), hour: Number(row['hour']), ...countsOf(row) }))
  }

  async usage(ask: UsageAsk): Promise<readonly UsageRow[]> {
    const groups = ask.by.map((dimension) => DIMENSIONS[dimension])
    const names = ask.by.map((dimension, i) => `${groups[i]} as "by_${dimension}"`)
    const order = ask.by.map((dimension, i) => `${groups[i]}${isNumber(dimension) ? '' : ' collate "C"'}`)
    const sums = COUNTED_MORE.map((column) => `coalesce(sum(${column}), 0)::text as ${column}`)
    const sql = `
select ${[...names, ...sums].join(', ')} from usage_hour
 where hour >= $1::int and hour < $2::int and ($3::text is null or org = $3) and ($4::text is null or tenant = $4)
   and ($5::text is null or key = $5) and ($6::text is null or model = $6)
 ${groups.length === 0 ? 'having count(*) > 0' : `group by ${groups.join(', ')} order by ${order.join(', ')}`}
 limit ${bound(ask.rowsMax)} offset ${bound(ask.rowsSkip ?? 0)}`
    const { orgId = null, tenantId = null, keyId = null, model = null } = ask
    const parameters = [ask.fromHour, ask.toHour, orgId, tenantId, keyId, model]
    const rows = await this.#database.query(sql, parameters, { lane: LANE })
    return rows.map(toUsageRow)
  }

  async find(ticketId: string): Promise<Settlement | undefined> {
    const [row] = await this.#database.query(
      `select ${COLUMNS.replaceAll(/\w+_(nano|us|ms)\b/g, '$&::text as $&')} from settlement where ticket_id = $1`,
      [ticketId],
      { lane: LANE },
    )
    return row === undefined ? undefined : toSettlement(row)
  }

  async prune(beforeMs: number, linesMax: number): Promise<number> {
    const [row] = await this.#database.query(
      `with old as (select ticket_id from settlement where at_ms < $1::bigint order by at_ms limit $2::int),
            gone as (delete from settlement where ticket_id in (select ticket_id from old) returning 1)
       select count(*)::int as gone from gone`,
      [beforeMs, linesMax],
      { lane: LANE },
    )
    return Number(row?.['gone'] ?? 0)
  }
}

/** A count that is written into a statement. */
const bound = (count: number): number => Math.max(0, Math.trunc(count))

const isNumber = (dimension: UsageDimension): boolean => dimension === 'day' || dimension === 'hour'

const toRow = (line: Settlement): Readonly<Record<string, unknown>> => ({
  ticket_id: line.ticketId,
  at_ms: line.atMs,
  org: line.orgId,
  tenant: line.tenantId,
  key: line.keyId,
  end_user: line.endUser,
  model: line.model,
  release: line.releaseId,
  outcome: line.outcome,
  input: line.inputTokens,
  cached: line.cachedTokens,
  output: line.outputTokens,
  price_nano: line.priceNano,
  price_version: line.priceVersion,
  cost_nano: line.costNano,
  prefill_us: line.prefillUs,
  decode_us: line.decodeUs,
  kv_block_ms: line.kvBlockMs,
  batching_saved_nano: line.batchingSavedNano,
  cache_saved_nano: line.cacheSavedNano,
})

const toSettlement = (row: Row): Settlement => ({
  ticketId: String(row['ticket_id']),
  atMs: Number(row['at_ms']),
  orgId: String(row['org']),
  tenantId: String(row['tenant']),
  keyId: String(row['key']),
  endUser: String(row['end_user']),
  model: String(row['model']),
  releaseId: String(row['release']),
  outcome: String(row['outcome']) as Settlement['outcome'],
  inputTokens: Number(row['input']),
  cachedTokens: Number(row['cached']),
  outputTokens: Number(row['output']),
  priceNano: Number(row['price_nano']),
  priceVersion: String(row['price_version']),
  costNano: Number(row['cost_nano']),
  prefillUs: Number(row['prefill_us']),
  decodeUs: Number(row['decode_us']),
  kvBlockMs: Number(row['kv_block_ms']),
  batchingSavedNano: Number(row['batching_saved_nano']),
  cacheSavedNano: Number(row['cache_saved_nano']),
})

const countsOf = (row: Row): Omit<Balance, 'scope'> => ({
  requests: Number(row['requests']),
  inputTokens: Number(row['input']),
  cachedTokens: Number(row['cached']),
  outputTokens: Number(row['output']),
  priceNano: BigInt(String(row['price_nano'])),
  costNano: BigInt(String(row['cost_nano'])),
})

const toUsageRow = (row: Row): UsageRow => {
  const text = (name: string): string | undefined => row[name] as string | undefined
  const hour = row['by_hour'] ?? row['by_day']
  return {
    ...countsOf(row),
    orgId: text('by_org'),
    tenantId: text('by_tenant'),
    keyId: text('by_key'),
    model: text('by_model'),
    hour: hour === undefined ? undefined : Number(hour),
    prefillUs: BigInt(String(row['prefill_us'])),
    decodeUs: BigInt(String(row['decode_us'])),
    kvBlockMs: BigInt(String(row['kv_block_ms'])),
    batchingSavedNano: BigInt(String(row['batching_saved_nano'])),
    cacheSavedNano: BigInt(String(row['cache_saved_nano'])),
  }
}
