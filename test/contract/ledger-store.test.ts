import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_COST, type Settlement } from '../../src/domain/ledger.ts'
import type { LedgerStore, UsageAsk, UsageDimension } from '../../src/lifecycle/ledger-ports.ts'
import { MemoryLedgerStore } from '../../src/store/memory-ledger-store.ts'
import { SqlLedgerStore } from '../../src/store/sql-ledger-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

const HOUR_MS = 3_600_000

const lineOf = (ticketId: string, more: Partial<Settlement> = {}): Settlement => ({
  ...NO_COST,
  ticketId,
  atMs: 10 * HOUR_MS,
  orgId: 'acme',
  tenantId: 'team',
  keyId: 'k1',
  endUser: '',
  model: 'm',
  releaseId: 'm@1',
  outcome: 'completed',
  inputTokens: 100,
  cachedTokens: 40,
  outputTokens: 20,
  priceNano: 1_000,
  priceVersion: 'v1',
  costNano: 700,
  ...more,
})

const ALL: Omit<UsageAsk, 'by'> = { fromHour: 0, toHour: 1_000_000, rowsMax: 10_000 }

describe.each(DATABASES)('the ledger in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let store: LedgerStore
  beforeAll(async () => {
    opened = await open()
    const { database } = opened
    store = database === undefined ? new MemoryLedgerStore() : new SqlLedgerStore(database)
    await store.find('nothing')
  }, 60_000)
  afterAll(() => opened?.close())

  it('counts a line once, however often it is written, and within one batch too', async () => {
    const org = 'once'
    const line = lineOf('once-1', { orgId: org, endUser: 'u"1' })
    expect(await store.write([line, line, lineOf('once-2', { orgId: org, outcome: 'cancelled' })])).toBe(2)
    expect(await store.write([line])).toBe(0)
    expect(await store.write([])).toBe(0)
    const [usage] = await store.usage({ ...ALL, by: [], orgId: org })
    expect(usage).toMatchObject({
      requests: 2,
      inputTokens: 200,
      cachedTokens: 80,
      priceNano: 2_000n,
      costNano: 1_400n,
    })
    const scopes = ['org:once', 'user:team/u"1', 'org:nobody']
    expect((await store.balances(scopes, 10, 11)).map(({ scope, requests }) => [scope, requests])).toEqual([
      ['org:once', 2],
      ['user:team/u"1', 1],
    ])
    expect(await store.balances(scopes, 11, 12)).toEqual([])
    expect(await store.find('once-1')).toEqual(line)
  })

  it('keeps money exactly, beyond what a float holds', async () => {
    const large = Number.MAX_SAFE_INTEGER
    const lines = [0, 1, 2].map((i) => lineOf(`large-${i}`, { orgId: 'large', priceNano: large, costNano: large - i }))
    await store.write(lines)
    const [usage] = await store.usage({ ...ALL, by: ['org'], orgId: 'large' })
    expect(usage?.priceNano).toBe(BigInt(large) * 3n)
    expect(usage?.costNano).toBe(BigInt(large) * 3n - 3n)
  })

  it('adds up the same by every grouping, as the plain twin does', async () => {
    const twin = new MemoryLedgerStore()
    const lines = fc.sample(
      fc.record({
        orgId: fc.constantFrom('grp-a', 'grp-b', 'grp-ä'),
        tenantId: fc.constantFrom('t1', 'T2', 't-3'),
        keyId: fc.constantFrom('k1', 'k2'),
        model: fc.constantFrom('m', 'N'),
        endUser: fc.constantFrom('', 'anna', 'ben/1'),
        atMs: fc.integer({ min: 0, max: 100 * HOUR_MS }),
        inputTokens: fc.nat(5_000),
        cachedTokens: fc.nat(100),
        outputTokens: fc.nat(500),
        priceNano: fc.nat(1_000_000),
        costNano: fc.nat(1_000_000),
        prefillUs: fc.nat(1_000),
        kvBlockMs: fc.nat(1_000),
      }),
      { numRuns: 300, seed: 17 },
    )
    const full = lines.map((line, i) => lineOf(`grp-${i}`, line))
    for (let i = 0; i < full.length; i += 70) {
      // Every batch overlaps with the one before.
      await store.write(full.slice(Math.max(0, i - 20), i + 70))
    }
    await twin.write(full)
    const groupings: UsageDimension[][] = [[], ['org'], ['tenant', 'day'], ['org', 'tenant', 'key', 'model', 'hour']]
    for (const by of groupings) {
      for (const orgId of ['grp-a', 'grp-b', 'grp-ä']) {
        const ask = { fromHour: 3, toHour: 90, by, orgId, rowsMax: 500 }
        expect(await store.usage(ask)).toEqual(await twin.usage(ask))
        const page = { ...ask, rowsMax: 4, rowsSkip: 2 }
        expect(await store.usage(page)).toEqual((await twin.usage(ask)).slice(2, 6))
        expect(await twin.usage(page)).toEqual((await twin.usage(ask)).slice(2, 6))
      }
    }
    const scopes = ['org:grp-a', 'tenant:T2', 'key:k2', 'model:t1/N', 'user:t-3/ben/1']
    const of = (ledger: LedgerStore) => ledger.balances(scopes.slice(0, 1), 3, 90)
    expect(await of(store)).toEqual(await of(twin))
  })

  it('removes old lines and keeps their sums', async () => {
    await store.write([1, 2, 3].map((i) => lineOf(`old-${i}`, { orgId: 'old', atMs: -HOUR_MS + i })))
    expect(await store.prune(0, 2)).toBe(2)
    expect(await store.find('old-1')).toBeUndefined()
    expect(await store.find('old-3')).toBeDefined()
    expect(await store.prune(0, 10)).toBe(1)
    expect((await store.usage({ ...ALL, fromHour: -2, by: ['org'], orgId: 'old' }))[0]?.requests).toBe(3)
  })
})
