import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KeptTwin } from '../../src/lifecycle/ports.ts'
import type { Database } from '../../src/store/database.ts'
import { SqlTwinStore } from '../../src/store/sql-twin-store.ts'
import { type OpenedDatabase, SQL_DATABASES } from '../support/databases.ts'

/** What was learned of engines is kept by every database: embedded, and a real PostgreSQL server. */
const DAY_MS = 86_400_000

const keptOf = (replicaId: string, rows = 1): KeptTwin => ({
  poolId: 'p',
  replicaId,
  memory: {
    prior: 'an "odd" name\u0000',
    decode: [6_000, 4.25, 0.04, 14],
    read: [6_000, 12, 17, 1e-7],
    tokenBudget: 2_048,
    rows,
    sequencesSeen: 50.5,
    ceiling: 72,
    kv: { tokensMax: 400_000, isTold: false },
  },
})

describe.each(SQL_DATABASES)('what was learned, in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let database: Database
  let store: SqlTwinStore
  beforeAll(async () => {
    opened = await open()
    database = opened.database as Database
    store = new SqlTwinStore(database)
    await store.load()
  }, 60_000)
  afterAll(() => opened?.close())

  it('is nothing at first, then the newest of every replica, as it was', async () => {
    expect(await store.load()).toEqual([])
    await store.write(1_000, [keptOf('a'), keptOf('b')])
    await store.write(2_000, [keptOf('a', 2)])
    const memory = { ...keptOf('a', 2).memory, prior: 'an "odd" name' }
    expect(await store.load()).toEqual([
      { replicaId: 'a', memory },
      { replicaId: 'b', memory: { ...memory, rows: 1 } },
    ])
  })

  it('is bounded: the oldest go, by number and by age', async () => {
    const many = Array.from({ length: 4_096 }, (_, i) => keptOf(`r${i}`))
    await store.write(3_000, many)
    const ids = new Set((await store.load()).map(({ replicaId }) => replicaId))
    expect([ids.size, ids.has('a'), ids.has('b')]).toEqual([4_096, false, false])
    await store.write(3_001, [keptOf('new')])
    const rows = await database.query('select count(*)::int as count from twin_memory', [])
    expect(rows[0]?.['count']).toBe(4_096)
    await store.write(3_002 + 30 * DAY_MS, [keptOf('late')])
    expect((await store.load()).map(({ replicaId }) => replicaId)).toEqual(['late'])
  })
})
