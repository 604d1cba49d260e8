import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { LiveClock } from '../../src/base/live-clock.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { buildConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import type { TreeFact } from '../../src/domain/tenancy.ts'
import type { TenancyStore } from '../../src/domain/tenancy-store.ts'
import type { AskedEdit } from '../../src/gateway/tenancy-admin.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlTenancyStore } from '../../src/store/sql-tenancy-store.ts'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { missing } from '../../test/support/installed.ts'
import { startPostgres } from '../../test/support/servers.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/**
 * What do a start and a change cost with 100,000 tenants and keys, compared with ten? Whole control planes on real
 * databases, each beside the other in turns, so that a busy machine is busy for both.
 */
const SIZES = [10, 100_000]
const TENANTS_PER_ORG = 1_000
const FACTS_PER_WRITE = 2_000
const ROUNDS = 100

const because = 'bench'
const POOLS = [{ model: 'm', backend: { kind: 'simulated' } }]

function configOf(weight: number): Config {
  const filed = { id: 'filed', weight, keys: [{ id: 'filed-1', hash: hashKey('sk-file') }] }
  const tree = { models: [{ name: 'm' }], pools: POOLS, tenants: [filed] }
  return buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
}

function* factsOf(count: number): Generator<TreeFact> {
  const story = { edit: 'create-org', by: 'bench', role: 'platform-admin', because, atMs: 0 }
  const orgOf = (i: number): string => `org-${Math.floor(i / TENANTS_PER_ORG)}`
  const fact = (level: string, orgId: string, after: object) =>
    ({ ...story, edit: `create-${level}`, level, orgId, before: undefined, after }) as unknown as TreeFact
  const source = 'registry'
  for (let i = 0; i < count; i += TENANTS_PER_ORG) {
    yield fact('org', orgOf(i), { id: orgOf(i), source, weight: 1, slos: ['steady'], terms: {} })
  }
  for (let i = 0; i < count; i++) {
    const rest = { source, weight: 1, slo: 'steady', contract: 'degrade', bidMax: 0, terms: {} }
    yield fact('tenant', orgOf(i), { id: `tenant-${i}`, orgId: orgOf(i), ...rest })
  }
  for (let i = 0; i < count; i++) {
    const secrets = [{ hash: hash('sha256', `secret-${i}`, 'hex'), createdAtMs: 0 }]
    const rest = { source, weight: 1, role: 'member', secrets, terms: { canManage: false } }
    yield fact('key', orgOf(i), { id: `key-${i}`, tenantId: `tenant-${i}`, ...rest })
  }
}

async function fill(store: TenancyStore, count: number): Promise<void> {
  let revision = 0
  let facts: TreeFact[] = []
  const flush = async (): Promise<void> => {
    const written = await store.write({ expectedRevision: revision, facts })
    if (written === 'stale') throw new Error('somebody else writes')
    revision = written
    facts = []
  }
  for (const fact of factsOf(count)) {
    facts.push(fact)
    if (facts.length >= FACTS_PER_WRITE) await flush()
  }
  if (facts.length > 0) await flush()
}

interface Took {
  readonly wallMs: number
  readonly cpuMs: number
  /** With the thread of the embedded database and those that collect garbage. */
  readonly processMs: number
}

/** On the wall, and of this thread alone: that is how long requests wait. */
async function took(work: () => unknown): Promise<Took> {
  const [cpuFrom, allFrom, wallFrom] = [process.threadCpuUsage(), process.cpuUsage(), performance.now()]
  await work()
  const { user, system } = process.threadCpuUsage(cpuFrom)
  const all = process.cpuUsage(allFrom)
  const processMs = (all.user + all.system) / 1_000
  return { wallMs: performance.now() - wallFrom, cpuMs: (user + system) / 1_000, processMs }
}

class Gateway {
  readonly world: ControlledWorld
  readonly count: number

  private constructor(world: ControlledWorld, count: number) {
    this.world = world
    this.count = count
  }

  static async start(store: TenancyStore, count: number): Promise<{ gateway: Gateway; start: Took }> {
    const options = { tenancyStore: store, isInUse: true, isShared: true }
    const world = await ControlledWorld.start(configOf(1), options)
    const { tenancy } = world.control.tenancy
    const start = await took(() => tenancy.start())
    if (tenancy.tree.keys.size !== count + 1) throw new Error(`${tenancy.tree.keys.size} keys instead of ${count + 1}`)
    return { gateway: new Gateway(world, count), start }
  }

  async change(edit: AskedEdit): Promise<void> {
    const reply = await this.world.control.tenancy.change('bench', edit)
    if (reply.kind !== 'changed') throw new Error(JSON.stringify(reply))
  }

  /** A rotation's answer waits until the others have looked: the second that it waits for passes at once here. */
  async rotate(id: string): Promise<void> {
    let isDone = false
    const rotated = this.change({ kind: 'rotate-key', id, graceMs: 0, because }).finally(() => {
      isDone = true
    })
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve))
      await this.world.run(this.world.clock.now() + 100_000)
    }
    await rotated
  }

  /** Looks for changes of others, as it does twice a second. */
  async look(isThere: () => boolean): Promise<void> {
    const { clock } = this.world
    await this.world.run(clock.now() + 600_000)
    while (!isThere()) await new Promise((resolve) => setImmediate(resolve))
  }
}

type Step = (gateway: Gateway, other: Gateway, round: number) => Promise<Took>

const STEPS: Readonly<Record<string, Step>> = {
  'create a tenant': (gateway, _, i) =>
    took(() => gateway.change({ kind: 'create-tenant', id: `new-${i}`, orgId: 'org-0', because })),
  'change its weight': (gateway, _, i) =>
    took(() => gateway.change({ kind: 'change-tenant', id: `new-${i}`, weight: 2, because })),
  'create a key': (gateway, _, i) =>
    took(() => gateway.change({ kind: 'create-key', id: `new-key-${i}`, tenantId: `new-${i}`, because })),
  'rotate it': (gateway, _, i) => took(() => gateway.rotate(`new-key-${i}`)),
  'seen by another gateway': async (_, other, i) => {
    const { tenancy } = other.world.control.tenancy
    // Four changes since it looked last.
    return took(() => other.look(() => tenancy.tree.keys.get(`new-key-${i}`)?.secrets.length === 1))
  },
  'a page of 100 tenants': (gateway) =>
    took(() =>
      gateway.world.control.tenancy
        .asOperator('bench')
        .list('tenant', { parentId: undefined, after: 'tenant-5', limit: 100 }),
    ),
  'a page of an org’s tenants': (gateway) =>
    took(() =>
      gateway.world.control.tenancy
        .asOperator('bench')
        .list('tenant', { parentId: 'org-0', after: 'tenant-5', limit: 100 }),
    ),
  'history of one key': (gateway, _, i) =>
    took(() => gateway.world.control.tenancy.asOperator('bench').history({ id: `new-key-${i}`, limit: 100 })),
  'remove the tenant': (gateway, _, i) =>
    took(() => gateway.change({ kind: 'remove-tenant', id: `new-${i}`, because })),
  'reload the file': (gateway, _, i) => took(() => gateway.world.reload(configOf(2 + (i % 2)))),
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

async function measure(name: string, stores: readonly TenancyStore[], progress: (text: string) => void) {
  const starts: Took[] = []
  const pairs: Array<readonly [Gateway, Gateway]> = []
  for (const [i, store] of stores.entries()) {
    const count = SIZES[i] as number
    progress(`${name}: ${count} tenants`)
    await fill(store, count)
    const first = await Gateway.start(store, count)
    const second = await Gateway.start(store, count)
    starts.push(second.start.wallMs < first.start.wallMs ? second.start : first.start)
    pairs.push([first.gateway, second.gateway])
  }
  const times = new Map<string, Took[][]>(Object.keys(STEPS).map((step) => [step, SIZES.map(() => [])]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, [gateway, other]] of pairs.entries()) {
      for (const [step, run] of Object.entries(STEPS)) times.get(step)?.[i]?.push(await run(gateway, other, round))
    }
  }
  const rows: Cell[][] = [['start', ...starts.flatMap(({ wallMs, cpuMs }) => [cpuMs, wallMs])]]
  for (const [step, sizes] of times) {
    rows.push([
      step,
      ...sizes.flatMap((all) => [median(all.map((one) => one.cpuMs)), median(all.map((one) => one.wallMs))]),
    ])
  }
  for (const [gateway, other] of pairs) for (const one of [gateway, other]) await one.world.close()
  const columns = ['what', ...SIZES.flatMap((size) => [`${size}: CPU ms`, `${size}: wall ms`])]
  return { starts, table: { title: name, columns, rows } }
}

async function run({ progress }: ExperimentOptions): Promise<Findings> {
  const clock = new LiveClock()
  const databases: Database[] = []
  const storeOn = (database: Database): TenancyStore => {
    const prepared = new PreparedDatabase(database, (db) => migrate(db))
    databases.push(prepared)
    return new SqlTenancyStore(prepared)
  }
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  const embedded = await measure(
    'Embedded store',
    SIZES.map((size) => storeOn(new PgliteDatabase({ clock, path: join(folder, String(size)) }))),
    progress,
  )
  const found = [embedded]
  const servers: Array<{ close(): unknown }> = []
  if (missing('postgresql') === undefined) {
    const stores: TenancyStore[] = []
    for (const _ of SIZES) {
      const server = await startPostgres()
      servers.push(server)
      stores.push(storeOn(new PgDatabase({ clock, url: server.url })))
    }
    found.push(await measure('PostgreSQL', stores, progress))
  }
  for (const database of databases) await database.close()
  for (const server of servers) await server.close()
  rmSync(folder, { recursive: true, force: true })
  return {
    tables: found.map(({ table }) => table),
    verdict: found.map(({ starts, table: { title } }) => {
      const { wallMs = 0, cpuMs = 0, processMs = 0 } = starts.at(-1) ?? {}
      const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
      return `${title}: 100,000 tenants and keys are read and in force in ${seconds(wallMs)} (target 2 s: ${wallMs <= 2_000 ? 'met' : 'missed'}), with ${seconds(cpuMs)} of the gateway’s thread and ${seconds(processMs)} of its process; ${(loadavg()[0] ?? 0).toFixed(0)} processes wanted the machine’s ${cpus().length} cores.`
    }),
  }
}

await runExperiment({
  name: 'tenancy-scale',
  title: 'Tenants and keys: what a start and a change cost',
  about:
    'A control plane with ten tenants and one with 100,000, one key each, on a database of its own, in turns. CPU is that of the gateway’s thread, during which requests wait; the wall includes the database and whoever else uses the machine. Medians of 100 rounds; a start is the better of two.',
  seeds: 1,
  run,
})
