import { parseArgs } from 'node:util'
import { msToUs } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { NO_COST } from '../../src/domain/ledger.ts'
import { FsSpool } from '../../src/spool/fs-spool.ts'
import { FsSpoolReader } from '../../src/spool/fs-spool-reader.ts'
import { LedgerKeeper } from '../../src/spool/ledger-keeper.ts'
import { SpoolBooks } from '../../src/spool/spool-books.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlLedgerStore } from '../../src/store/sql-ledger-store.ts'
import { TestFolder } from '../../test/support/child.ts'
import { SQL_DATABASES } from '../../test/support/databases.ts'

/**
 * How many settlements a second does the ledger take, and how much CPU is that? Tickets are opened, settled and costed at
 * a steady rate; they go through the spool on a disk and the keeper into the embedded database, as in a server. Then: how
 * long does a balance take where PostgreSQL has many settlements?
 *
 *   --rate N --seconds N        settlements a second, and for how long; 0 seconds leaves this part out
 *   --rows N                    settlements in PostgreSQL, 0 leaves this part out; 10000000 is the bar's number
 */
const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '60' },
    rows: { type: 'string', default: '1000000' },
  },
})
const [rate, seconds, rows] = [Number(values.rate), Number(values.seconds), Number(values.rows)]

const TICK_MS = 10
const TENANTS = 200
const PRICE = {
  version: 'v1',
  inputNano: 500_000_000,
  cachedNano: 50_000_000,
  outputNano: 2_000_000_000,
  requestNano: 0,
}
const clock = new LiveClock()
const complain = (problem: string): void => void process.stderr.write(`${problem}\n`)
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

if (seconds > 0) await measureSettlements()
if (rows > 0) await measureBalances()

async function measureSettlements(): Promise<void> {
  const folder = new TestFolder()
  const database = new PreparedDatabase(new PgliteDatabase({ clock, path: `${folder.path}/data` }), (db) => migrate(db))
  const store = new SqlLedgerStore(database)
  await store.find('nothing')
  const spool = await FsSpool.open({
    folder: `${folder.path}/spool`,
    now: () => clock.now(),
    later: (ms, run) => clock.at(clock.now() + msToUs(ms), run),
    complain,
    bytesMax: 10_000_000_000,
  })
  const reader = await FsSpoolReader.open(spool, 'ledger', complain)
  const keeper = new LedgerKeeper({ clock, reader, store, trim: (seq) => spool.trim(seq), complain })
  const books = new SpoolBooks({
    append: (text) => spool.append(text),
    nowMs: () => Date.now(),
    doTenantsPayCrashes: false,
    isCosting: true,
  })
  keeper.start()
  const begun = performance.now()
  const [process0, thread0] = [process.cpuUsage(), process.threadCpuUsage()]
  let made = 0
  let inBooksMs = 0
  while (performance.now() - begun < seconds * 1_000) {
    const due = Math.floor(((performance.now() - begun) / 1_000) * rate)
    const at = performance.now()
    for (; made < due; made++) settle(books, made)
    inBooksMs += performance.now() - at
    await pause(TICK_MS)
  }
  const elapsedMs = performance.now() - begun
  const { written } = keeper.view()
  const share = ({ user, system }: NodeJS.CpuUsage): string =>
    `${((user + system) / elapsedMs / 10).toFixed(1)} % of a core`
  const [whole, main] = [share(process.cpuUsage(process0)), share(process.threadCpuUsage(thread0))]
  await spool.close()
  for (let i = 0; i < 1_000 && !(await keeper.catchUp()); i++) await pause(TICK_MS)
  await keeper.close()
  const lateMs = performance.now() - begun - elapsedMs
  const [sum] = await store.usage({ fromHour: 0, toHour: 2_000_000_000, by: [], rowsMax: 1 })
  tell(
    'settlements',
    `${made} in ${(elapsedMs / 1_000).toFixed(1)} s: ${Math.round((made / elapsedMs) * 1_000)} a second`,
  )
  tell('in the database by then', `${written}: ${Math.round((written / elapsedMs) * 1_000)} a second`)
  tell('the rest took', `${Math.round(lateMs)} ms more; the database has ${sum?.requests}`)
  tell(
    'CPU of the main thread',
    `${main}; ${((inBooksMs / made) * 1_000).toFixed(1)} µs a settlement on the request path`,
  )
  tell('CPU of the process', `${whole} (main thread, database’s thread, disk)`)
  tell('longest group commit', `${Math.round(spool.view().commitUsMax / 1_000)} ms; refused ${spool.view().refused}`)
  if (sum?.requests !== made) process.exitCode = 1
  await database.close()
  folder.remove()
}

/** What one request writes into the books. */
function settle(books: SpoolBooks, i: number): void {
  const tenant = i % TENANTS
  const payer = { orgId: `org-${tenant % 20}`, tenantId: `tenant-${tenant}`, keyId: `key-${tenant}`, endUser: '' }
  const line = {
    ...payer,
    ticketId: `req_${i}`,
    model: `model-${i % 4}`,
    releaseId: 'model@1',
    inputTokens: 500,
    price: PRICE,
  }
  books.opened({ ...line, isSold: true })
  const priced = { promptTokens: 500, cachedTokens: 100, outputTokens: 120 }
  const counts = { cachedTokens: 100, outputTokens: 120 }
  books.settled({ ...line, ...counts, atMs: Date.now(), outcome: 'completed', priced, isCostOpen: true })
  books.costed(line.ticketId, { ...NO_COST, costNano: 70_000, prefillUs: 9_000, decodeUs: 62_000 })
}

async function measureBalances(): Promise<void> {
  const kind = SQL_DATABASES.find(({ name }) => name === 'PostgreSQL')
  if (kind === undefined || kind.whyNot !== undefined) {
    tell('balances', `left out: ${kind?.whyNot ?? 'no PostgreSQL'}`)
    return
  }
  const opened = await kind.open()
  const database = opened.database as Database
  try {
    const store = new SqlLedgerStore(database)
    await fill(database)
    for (const scopeCount of [1, 4]) await timeBalances(store, scopeCount)
  } finally {
    await opened.close()
  }
}

/** A month's balance is read from its hours: the number of settlements behind them does not matter. */
async function timeBalances(store: SqlLedgerStore, scopeCount: number): Promise<void> {
  const hour = Math.floor(Date.now() / 3_600_000)
  const times: number[] = []
  for (let i = 0; i < 500; i++) {
    const tenant = i % TENANTS
    const all = [`tenant:tenant-${tenant}`, `org:org-${tenant % 20}`, `key:key-${tenant}`]
    const scopes = [...all, `model:tenant-${tenant}/model-1`].slice(0, scopeCount)
    const at = performance.now()
    const found = await store.balances(scopes, hour - 720, hour + 1)
    times.push(performance.now() - at)
    if (found.length !== scopeCount) process.exitCode = 1
  }
  times.sort((a, b) => a - b)
  const of = (share: number): string => `${times[Math.floor(share * (times.length - 1))]?.toFixed(2)} ms`
  tell(`30 days of ${scopeCount} scope(s)`, `${rows} settlements: p50 ${of(0.5)}, p99 ${of(0.99)}`)
}

/** Settlements over thirty days, and their sums as the store makes them; in parts, because a statement has its time. */
async function fill(database: Database): Promise<void> {
  const part = 250_000
  const nowMs = Date.now()
  for (let from = 0; from < rows; from += part) {
    const to = Math.min(rows, from + part)
    await database.query(
      `with fresh as (
        insert into settlement (ticket_id, at_ms, org, tenant, key, end_user, model, release, outcome, input, cached, output,
          price_nano, price_version, cost_nano, prefill_us, decode_us, kv_block_ms, batching_saved_nano, cache_saved_nano)
        select 'req_' || i, $3::bigint - (i::bigint * 7919 % 2592000) * 1000, 'org-' || i % ${TENANTS} % 20,
          'tenant-' || i % ${TENANTS}, 'key-' || i % ${TENANTS}, '', 'model-' || (i / ${TENANTS}) % 4, 'model@1',
          'completed', 500, 100, 120, 445000, 'v1', 70000, 9000, 62000, 100, 0, 0
        from generate_series($1::int, $2::int) as i
        returning *, (at_ms / 3600000)::int as hour)
      insert into balance as b (scope, hour, requests, input, cached, output, price_nano, cost_nano)
      select scope, hour, count(*), sum(input), sum(cached), sum(output), sum(price_nano), sum(cost_nano)
        from fresh, lateral (values ('org:' || org), ('tenant:' || tenant), ('key:' || key),
          ('model:' || tenant || '/' || model)) as scopes (scope)
       group by scope, hour
      on conflict (scope, hour) do update set requests = b.requests + excluded.requests, input = b.input + excluded.input,
        cached = b.cached + excluded.cached, output = b.output + excluded.output,
        price_nano = b.price_nano + excluded.price_nano, cost_nano = b.cost_nano + excluded.cost_nano`,
      [from, to - 1, nowMs],
      { lane: '/fill' },
    )
    process.stderr.write(`${to} of ${rows} settlements\n`)
  }
  await database.query('analyze balance', [], { lane: '/fill' })
}

function tell(what: string, value: string): void {
  console.log(`${what.padEnd(32)} ${value}`)
}
