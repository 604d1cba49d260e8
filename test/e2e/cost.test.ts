import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import type { CostClosed, SecondClosed } from '../../src/domain/cost-entry.ts'
import type { Entry } from '../../src/domain/entry.ts'
import { billUpTo } from '../../src/policy/cost/replica-bill.ts'
import { sumOfLines } from '../../src/policy/cost/second-closer.ts'
import { LawChecker } from '../../src/sim/laws.ts'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** A server with three simulated replicas, as it runs: what its closed seconds say is what the replicas cost. */
let platform: TestPlatform
const ids: string[] = []

async function ask(key: string, content: string): Promise<string> {
  const chat = { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 40, stream: true }
  const response = await postJson(`${platform.baseURL}/chat/completions`, chat, authorization(key))
  await response.text()
  return response.headers.get('x-request-id')!
}

const costOf = (id: string): Promise<CostClosed> =>
  eventually(`the cost of ${id} is final`, () =>
    platform.entries.find((entry): entry is CostClosed => entry.kind === 'cost-closed' && entry.ticketId === id),
  )

beforeAll(async () => {
  const pools = [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 3 }]
  platform = await startPlatform(testTree({ pools }))
  const words = 'Tell me about the weights of a model. '.repeat(30)
  ids.push(...(await Promise.all([ACME_KEY, GLOBEX_KEY, ACME_KEY, ACME_KEY].map((key) => ask(key, words)))))
}, 60_000)

describe('what three replicas cost', () => {
  it('is told for every request once, within seconds of its end', async () => {
    for (const id of ids) {
      const closed = await costOf(id)
      const settled = await platform.settled(id)
      expect(closed.costNano).toBeGreaterThan(0)
      expect(closed).toMatchObject({ isMeasured: true, isPriced: true, wasteNano: 0, tenantId: settled.tenantId })
      expect(closed.time.decodeUs).toBeGreaterThan(0)
    }
    const told = platform.entries.filter((entry) => entry.kind === 'cost-closed')
    expect(told).toHaveLength(ids.length)
  })

  it('is shown by `spillway explain`', async () => {
    await costOf(ids[0]!)
    const out: string[] = []
    const io = { out: (text: string) => out.push(text), err: () => {} }
    expect(await runCli(['explain', ids[0]!, '--key', ACME_KEY, '--url', platform.address], io)).toBe(0)
    expect(out.join('\n')).toMatch(/final cost: \$0\.0\d+: \d+ ms of engine time, measured by the engine/)
  })

  it('is counted by tenant', async () => {
    const nano = (await Promise.all(ids.map(costOf))).filter(({ tenantId }) => tenantId === 'acme')
    const usd = nano.reduce((sum, { costNano }) => sum + costNano, 0) / 1e9
    expect(await platform.metric('spillway_cost_usd_total', { tenant: 'acme', kind: 'used' })).toBeCloseTo(usd, 9)
    expect(await platform.metric('spillway_bill_usd_total', { pool: `${MODEL}-local` })).toBeGreaterThan(usd)
  })

  it('adds up: every closed second is its bill, and all bills of a replica are its rate from start to stop', async () => {
    await platform.close()
    const entries: readonly Entry[] = platform.entries
    const seconds = entries.filter((entry): entry is SecondClosed => entry.kind === 'second-closed')
    const byReplica = Map.groupBy(seconds, ({ replicaId }) => replicaId)
    expect(byReplica.size).toBe(3)
    for (const closed of seconds) expect(sumOfLines(closed)).toBe(closed.billNano)
    for (const own of byReplica.values()) {
      const { billedSince, nanoPerHour, toAt } = own.at(-1)!
      const sum = own.reduce((total, { billNano }) => total + billNano, 0)
      const before = own[0]!.fromAt
      const whole = billUpTo(nanoPerHour, toAt - billedSince) - billUpTo(nanoPerHour, before - billedSince)
      expect(sum).toBe(Number(whole))
      expect(own.every(({ fromAt }, i) => i === 0 || fromAt === own[i - 1]!.toAt)).toBe(true)
    }
    const laws = new LawChecker()
    for (const entry of entries) laws.take(entry)
    laws.finishCosts()
    expect(laws.violations.filter(({ law }) => law === 'L15')).toEqual([])
  })
})

afterAll(() => platform.close().catch(() => {}))
