import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KeyRecord, OrgRecord, TenantRecord, TreeFact } from '../../src/domain/tenancy.ts'
import type { TenancyStore } from '../../src/domain/tenancy-store.ts'
import type { Database } from '../../src/store/database.ts'
import { MemoryTenancyStore } from '../../src/store/memory-tenancy-store.ts'
import { SqlTenancyStore } from '../../src/store/sql-tenancy-store.ts'
import { DATABASES, type OpenedDatabase } from '../support/databases.ts'

/** What every store of orgs, tenants and keys must do: in memory, embedded, and on a real PostgreSQL server. */

const org = (id: string, weight = 1): OrgRecord => ({ id, source: 'registry', weight, slos: ['steady'], terms: {} })
const tenant = (id: string, orgId: string): TenantRecord => ({
  id,
  orgId,
  source: 'registry',
  weight: 1,
  slo: 'steady',
  contract: 'degrade',
  bidMax: 0,
  terms: { models: ['m "1"', 'ü \\ \n'], allowance: { tokens: { perMinute: 60, burst: 60 } } },
})
const key = (id: string, tenantId: string): KeyRecord => ({
  id,
  tenantId,
  source: 'registry',
  weight: 2,
  role: 'member',
  secrets: [{ hash: 'ab'.repeat(32), createdAtMs: 1_700_000_000_000 }],
  terms: { expiresAtMs: 1_800_000_000_000, canInfer: true },
})

const STORY = {
  atMs: 1_700_000_000_000,
  by: 'ada',
  byKind: 'operator',
  role: 'platform-admin',
  because: "it's time; drop table tenancy_fact; --",
  edit: 'create-org',
  orgId: 'acme',
} as const

const orgFact = (before: OrgRecord | undefined, after: OrgRecord | undefined): TreeFact => ({
  ...STORY,
  level: 'org',
  before,
  after,
})

describe.each(DATABASES)('tenancy in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase | undefined
  let database: Database | undefined
  let store: TenancyStore
  beforeAll(async () => {
    opened = await open()
    database = opened.database
    store = database === undefined ? new MemoryTenancyStore() : new SqlTenancyStore(database)
    await store.revision()
  }, 60_000)
  afterAll(() => opened?.close())

  it('is empty at first', async () => {
    expect(await store.load()).toEqual({ revision: 0, orgs: [], tenants: [], keys: [] })
    expect(await store.history({ limit: 10 })).toEqual([])
  })

  it('keeps records of all levels as they were given, at one revision', async () => {
    const facts: TreeFact[] = [
      orgFact(undefined, org('acme')),
      { ...STORY, level: 'tenant', before: undefined, after: tenant('shop', 'acme') },
      { ...STORY, level: 'key', before: undefined, after: key('web', 'shop') },
    ]
    expect(await store.write({ expectedRevision: 0, facts })).toBe(1)
    expect(await store.load()).toEqual({
      revision: 1,
      orgs: [org('acme')],
      tenants: [tenant('shop', 'acme')],
      keys: [key('web', 'shop')],
    })
    expect(await store.since(0, 10)).toEqual(facts.map((fact) => ({ ...fact, revision: 1 })))
  })

  it('replaces and removes, and tells before and after, newest first', async () => {
    await store.write({ expectedRevision: 1, facts: [orgFact(org('acme'), org('acme', 5))] })
    await store.write({
      expectedRevision: 2,
      facts: [{ ...STORY, edit: 'remove-key', level: 'key', before: key('web', 'shop'), after: undefined }],
    })
    const state = await store.load()
    expect(state.keys).toEqual([])
    expect(state.orgs[0]?.weight).toBe(5)
    const [removal, change] = await store.history({ limit: 2 })
    expect(removal).toMatchObject({ revision: 3, by: 'ada', because: STORY.because, before: { id: 'web' } })
    expect(removal?.after).toBeUndefined()
    expect(change).toMatchObject({ revision: 2, before: { weight: 1 }, after: { weight: 5 } })
    expect((await store.history({ id: 'web', limit: 9 })).map(({ revision }) => revision)).toEqual([3, 1])
    expect((await store.since(1, 9)).map(({ revision }) => revision)).toEqual([2, 3])
    expect(await store.since(0, 2)).toHaveLength(2)
  })

  it('keeps the latest use of each secret, apart from revisions, and forgets those that are gone', async () => {
    const { revision } = await store.load()
    const [a, b, c] = ['a', 'b', 'c'].map((letter) => letter.repeat(64)) as [string, string, string]
    const at = 1_700_000_000_000
    await store.noteUses({ uses: new Map(Object.entries({ [a]: at, [b]: at })), gone: [] })
    await store.noteUses({ uses: new Map(Object.entries({ [a]: at - 60_000, [b]: at + 60_000 })), gone: [] })
    expect(await store.usesOf([a, b, c])).toEqual(new Map(Object.entries({ [a]: at, [b]: at + 60_000 })))
    await store.noteUses({ uses: new Map([[c, at]]), gone: [a] })
    expect([...(await store.usesOf([a, c])).keys()]).toEqual([c])
    expect(await store.usesOf([])).toEqual(new Map())
    expect(await store.revision()).toBe(revision)
  })

  it('tells the history of one org, of one level, and of an org since it was made last', async () => {
    const { revision } = await store.load()
    const ofOrg = (orgId: string, fact: TreeFact): TreeFact => ({ ...fact, orgId })
    const made = ofOrg('bolt', orgFact(undefined, org('bolt')))
    const shop: TreeFact = ofOrg('bolt', { ...STORY, level: 'tenant', before: undefined, after: tenant('web', 'bolt') })
    const gone: TreeFact = ofOrg('bolt', { ...STORY, level: 'tenant', before: tenant('web', 'bolt'), after: undefined })
    await store.write({ expectedRevision: revision, facts: [made, shop] })
    await store.write({ expectedRevision: revision + 1, facts: [gone, ofOrg('bolt', orgFact(org('bolt'), undefined))] })
    const told = async (ask: object) =>
      (await store.history({ limit: 9, ...ask })).map((fact) => fact.revision - revision)
    expect(await told({ orgId: 'bolt' })).toEqual([2, 2, 1, 1])
    expect(await told({ orgId: 'nobody' })).toEqual([])
    expect(await told({ id: 'web', level: 'tenant' })).toEqual([2, 1])
    expect(await told({ id: 'web', level: 'tenant', orgId: 'acme' })).toEqual([])
    await store.write({ expectedRevision: revision + 2, facts: [made] })
    expect(await told({ orgId: 'bolt' })).toEqual([3])
  })

  it('lets one of several writers win, and stores nothing of the others', async () => {
    const before = await store.load()
    const late = { expectedRevision: before.revision - 1, facts: [orgFact(undefined, org('late'))] }
    expect(await store.write(late)).toBe('stale')
    expect(await store.load()).toEqual(before)
    const ends = await Promise.all(
      [1, 2, 3, 4, 5].map((i) =>
        store.write({
          expectedRevision: before.revision,
          facts: [orgFact(undefined, org(`o${i}`)), orgFact(org('acme', 5), org('acme', i * 10))],
        }),
      ),
    )
    expect(ends.filter((end) => end === before.revision + 1)).toHaveLength(1)
    expect(ends.filter((end) => end === 'stale')).toHaveLength(4)
    const { orgs, revision } = await store.load()
    const winner = orgs.find(({ id }) => id.startsWith('o'))?.id.slice(1)
    expect(orgs.filter(({ id }) => id.startsWith('o'))).toHaveLength(1)
    expect(orgs.find(({ id }) => id === 'acme')?.weight).toBe(Number(winner) * 10)
    expect(revision).toBe(before.revision + 1)
  })

  it('finds facts by an index, in the order that is asked for, however many there are', async () => {
    if (database === undefined) return
    const { revision } = await store.load()
    const facts = Array.from({ length: 3_000 }, (_, i) => orgFact(undefined, org(`many-${i}`)))
    expect(await store.write({ expectedRevision: revision, facts })).toBe(revision + 1)
    const plans: string[] = []
    const explaining: Database = {
      query: async (sql, parameters) => {
        const rows = await (database as Database).query(`explain ${sql}`, parameters)
        plans.push(rows.map((row) => String(row['QUERY PLAN'])).join('\n'))
        return []
      },
      run: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
    const asked = new SqlTenancyStore(explaining)
    await asked.revision()
    await asked.since(revision, 1_000)
    await asked.history({ limit: 100 })
    await asked.history({ id: 'many-7', limit: 100 })
    await asked.history({ id: 'many-7', level: 'tenant', limit: 1 })
    await asked.history({ orgId: 'acme', limit: 100 })
    expect(plans).toHaveLength(6)
    // The ids' facts may be sorted, there are few. A number that is made for the answer is in no index.
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan|Sort Key: .*integer|Filter: .*\bid = /)
  })
})
