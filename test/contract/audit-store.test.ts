import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AuditCopyStore, AuditSearch, CopiedEvent } from '../../src/domain/audit-copy.ts'
import { MemoryAuditStore } from '../../src/store/memory-audit-store.ts'
import { SqlAuditStore } from '../../src/store/sql-audit-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

const KINDS = ['inference.settled', 'key.created', 'keys', 'erased']

const eventArbitrary: fc.Arbitrary<CopiedEvent> = fc
  .record({
    origin: fc.constantFrom('a/0', 'a/1', 'B/0'),
    seq: fc.integer({ min: 1, max: 12 }),
    atMs: fc.integer({ min: 0, max: 5 }),
    kind: fc.constantFrom(...KINDS),
    org: fc.constantFrom('o1', undefined),
    tenant: fc.constantFrom('t1', 't2', undefined),
    request: fc.constantFrom('r1', 'r%', undefined),
    seals: fc.array(fc.constantFrom('s1', 's2'), { maxLength: 2 }),
  })
  .map((event) => ({ ...event, line: JSON.stringify({ at: event.atMs, text: 'ü "\u0001' }) }))

const searchArbitrary: fc.Arbitrary<AuditSearch> = fc.record(
  {
    org: fc.constantFrom('o1', 'o2'),
    tenant: fc.constantFrom('t1', 't2'),
    kind: fc.constantFrom(...KINDS, 'key', 'inference'),
    request: fc.constantFrom('r1', 'r%'),
    seals: fc.array(fc.constantFrom('s1', 's2'), { maxLength: 2 }),
    after: fc.record({ atMs: fc.integer({ min: 0, max: 5 }), origin: fc.constantFrom('a/0', 'B/0'), seq: fc.nat(12) }),
    fromMs: fc.integer({ min: 0, max: 3 }),
    toMs: fc.integer({ min: 2, max: 7 }),
    limit: fc.integer({ min: 1, max: 20 }),
  },
  { requiredKeys: ['fromMs', 'toMs', 'limit'] },
)

describe.each(DATABASES)('the copy of the audit in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let store: AuditCopyStore
  beforeAll(async () => {
    opened = await open()
    const { database } = opened
    store = database === undefined ? new MemoryAuditStore() : new SqlAuditStore(database)
  }, 60_000)
  afterAll(async () => {
    await opened?.close()
  })

  it('finds what its twin in memory finds, in the same order, and keeps events once', { timeout: 60_000 }, async () => {
    const twin = new MemoryAuditStore()
    await fc.assert(
      fc.asyncProperty(
        fc.array(eventArbitrary, { maxLength: 8 }),
        fc.array(searchArbitrary, { minLength: 1, maxLength: 3 }),
        async (events, searches) => {
          const unique = [...new Map(events.map((event) => [`${event.origin} ${event.seq}`, event])).values()]
          await store.write(unique)
          await twin.write(unique)
          for (const search of searches) expect(await store.search(search)).toEqual(await twin.search(search))
        },
      ),
      { numRuns: 30 },
    )
    expect(await store.prune(3, 1_000)).toBe(await twin.prune(3, 1_000))
    const all = { fromMs: 0, toMs: 100, limit: 100 }
    expect(await store.search(all)).toEqual(await twin.search(all))
  })
})
