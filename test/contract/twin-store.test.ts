import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { KeptTwin } from '../../src/lifecycle/ports.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlTwinStore } from '../../src/store/sql-twin-store.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'

/** What was learned of engines is kept by every database: embedded, and a real PostgreSQL server. */
const clock = new LiveClock()
let postgres: TestServer | undefined

const KINDS: ReadonlyArray<{ name: string; open: () => Promise<Database>; needs?: 'postgresql' }> = [
  { name: 'PGlite', open: () => Promise.resolve(new PgliteDatabase({ clock, path: undefined })) },
  {
    name: 'PostgreSQL',
    needs: 'postgresql',
    async open() {
      postgres = await startPostgres()
      return new PgDatabase({ clock, url: postgres.url })
    },
  },
]

afterAll(() => postgres?.close())

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

describe.each(KINDS)('what was learned, in $name', ({ open, needs }) => {
  const why = needs === undefined ? undefined : missing(needs)
  if (why !== undefined) {
    it.skip(why, () => {})
    return
  }
  let database: Database
  let store: SqlTwinStore
  beforeAll(async () => {
    database = new PreparedDatabase(await open(), (db) => migrate(db))
    store = new SqlTwinStore(database)
    await store.load()
  }, 60_000)
  afterAll(() => database.close())

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
