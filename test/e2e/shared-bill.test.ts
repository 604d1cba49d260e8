import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { CostClosed, SecondClosed } from '../../src/domain/cost-entry.ts'
import type { Entry } from '../../src/domain/entry.ts'
import type { BillHour } from '../../src/domain/second-store.ts'
import { billUpTo } from '../../src/policy/cost/replica-bill.ts'
import { LawChecker } from '../../src/sim/laws.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { SqlLedgerStore } from '../../src/store/sql-ledger-store.ts'
import { SqlSecondStore } from '../../src/store/sql-second-store.ts'
import { eventually } from '../support/eventually.ts'
import { pairTree, saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
} from '../support/start-platform.ts'

/** Two gateways on one PostgreSQL use the same three replicas: the replicas are billed once. */
const why = missing('postgresql')
describe.skipIf(why !== undefined)('the bill of replicas that two gateways use', () => {
  let postgres: TestServer
  let [leader, other] = [] as unknown as [TestPlatform, TestPlatform]
  let folder = ''
  const ids: Array<[TestPlatform, string]> = []

  beforeAll(async () => {
    postgres = await startPostgres()
    folder = mkdtempSync(join(tmpdir(), 'spillway-bill-'))
    const pools = [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 3 }]
    const tree = (name: string) =>
      pairTree(postgres.url, { pools, ledger: { enabled: true, spoolPath: join(folder, name) } })
    const both = [await startPlatform(tree('a')), await startPlatform(tree('b'))] as const
    const said = await eventually('both know who leads', async () => {
      const each = await Promise.all(both.map(({ address }) => saysOfLeader(address)))
      return each.every((text) => text.endsWith('gateway leads')) && each
    })
    const first = said.indexOf('this gateway leads')
    ;[leader, other] = [both[first]!, both[1 - first]!]
  }, 120_000)
  afterAll(async () => {
    await leader.close().catch(() => {})
    await other.close().catch(() => {})
    await postgres.close()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  async function ask(platform: TestPlatform, key: string): Promise<void> {
    const content = 'Tell me about the weights of a model. '.repeat(30)
    const chat = { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 60, stream: true }
    const response = await postJson(`${platform.baseURL}/chat/completions`, chat, authorization(key))
    await response.text()
    ids.push([platform, response.headers.get('x-request-id')!])
  }

  const secondsOf = (platform: TestPlatform): SecondClosed[] =>
    platform.entries.filter((entry): entry is SecondClosed => entry.kind === 'second-closed')

  const costOf = (platform: TestPlatform, id: string): Promise<CostClosed> =>
    eventually(`the cost of ${id} is final`, () =>
      platform.entries.find((entry): entry is CostClosed => entry.kind === 'cost-closed' && entry.ticketId === id),
    )

  it('is closed by the leader alone, and each gateway hears what its own requests cost', {
    timeout: 60_000,
  }, async () => {
    await Promise.all(
      [leader, other].flatMap((platform) => [ACME_KEY, GLOBEX_KEY, ACME_KEY].map((key) => ask(platform, key))),
    )
    for (const [platform, id] of ids) {
      const closed = await costOf(platform, id)
      expect(closed).toMatchObject({ isMeasured: true, isPriced: true })
      expect(closed.costNano).toBeGreaterThan(0)
    }
    expect(new Set(secondsOf(leader).map(({ replicaId }) => replicaId)).size).toBe(3)
    expect(secondsOf(other)).toEqual([])
  })

  it('goes on without a gap or a second twice when the leader ends, and adds up to the ledger', {
    timeout: 60_000,
  }, async () => {
    await leader.close()
    await eventually('the other one closes seconds', () => secondsOf(other).length > 3)
    await ask(other, GLOBEX_KEY)
    await costOf(other, ids.at(-1)![1])
    await other.close()

    const entries: Entry[] = [...leader.entries, ...other.entries].toSorted((a, b) => a.at - b.at)
    const seconds = entries.filter((entry): entry is SecondClosed => entry.kind === 'second-closed')
    for (const own of Map.groupBy(seconds, ({ replicaId }) => replicaId).values()) {
      const { billedSince, nanoPerHour, toAt } = own.at(-1)!
      expect(own[0]!.fromAt).toBe(billedSince)
      expect(own.every(({ fromAt }, i) => i === 0 || fromAt === own[i - 1]!.toAt)).toBe(true)
      expect(sumOf(own, ({ billNano }) => billNano)).toBe(Number(billUpTo(nanoPerHour, toAt - billedSince)))
    }
    const laws = new LawChecker()
    for (const entry of entries) laws.take(entry)
    laws.finishCosts()
    expect(laws.violations.filter(({ law }) => law === 'L15')).toEqual([])

    const database = new PgDatabase({ clock: new LiveClock(), url: postgres.url })
    try {
      const bills = await new SqlSecondStore(database).bills(0, 2_000_000_000)
      expect(sumOf(bills, (bill) => bill.billNano)).toBe(sumOf(seconds, ({ billNano }) => billNano))
      expect(sumOf(bills, (bill) => bill.seconds)).toBe(seconds.length)
      const ask = { fromHour: 0, toHour: 2_000_000_000, by: [], rowsMax: 1 } as const
      const [ledger] = await new SqlLedgerStore(database).usage(ask)
      expect(Number(ledger?.requests)).toBe(ids.length)
      expect(Number(ledger?.costNano) + sumOf(bills, borneBy)).toBe(sumOf(bills, (bill) => bill.billNano))
      expect(Number(ledger?.costNano)).toBeGreaterThan(0)
    } finally {
      await database.close()
    }
  })
})

/** What no request pays for. */
const borneBy = (bill: BillHour): number =>
  bill.tenantsIdleNano + bill.idleNano + bill.wasteNano + bill.platformNano + bill.crashedNano + bill.lateNano

const sumOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0)
