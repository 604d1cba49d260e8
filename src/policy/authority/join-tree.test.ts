import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { KeyRecord, OrgRecord, RecordSource, TenantRecord } from '../../domain/tenancy.ts'
import { fileChanges, withFile, withStored } from './join-tree.ts'
import { type LoadedTree, loadTree, type TreeRecords } from './load-tree.ts'
import type { RecordChange, TenancyTree } from './tree.ts'

const org = (id: string, source: RecordSource): OrgRecord => ({ id, source, slos: ['steady'], terms: {} })

const tenant = (id: string, orgId: string, source: RecordSource, weight: number): TenantRecord => ({
  id,
  orgId,
  source,
  weight,
  slo: 'steady',
  contract: 'degrade',
  bidMax: 0,
  terms: {},
})

const key = (id: string, tenantId: string, source: RecordSource, hashes: readonly string[]): KeyRecord => ({
  id,
  tenantId,
  source,
  weight: 1,
  role: 'member',
  secrets: hashes.map((hash) => ({ hash, createdAtMs: 0 })),
  terms: {},
})

// Few names, so that file and store meet often.
const oneOf = (...names: string[]) => fc.constantFrom(...names)
const orgId = oneOf('o1', 'o2')
const tenantId = oneOf('t1', 't2', 't3')
const keyId = oneOf('k1', 'k2', 'k3')
const hashes = fc.uniqueArray(oneOf('h1', 'h2', 'h3'), { maxLength: 2 })
const weight = fc.integer({ min: 1, max: 2 })

/** A file as the settings make it: every parent is there, and no secret twice. */
const file = fc
  .record({
    tenants: fc.uniqueArray(fc.tuple(tenantId, orgId, weight), { selector: ([id]) => id, maxLength: 2 }),
    keys: fc.uniqueArray(fc.tuple(keyId, fc.nat(), oneOf('h1', 'h2', 'h3')), { selector: ([id]) => id, maxLength: 2 }),
  })
  .map(({ tenants, keys }): TreeRecords => {
    const used = new Set<string>()
    return {
      orgs: [...new Set(tenants.map(([, id]) => id))].map((id) => org(id, 'file')),
      tenants: tenants.map(([id, parent, weighs]) => tenant(id, parent, 'file', weighs)),
      keys: keys.flatMap(([id, place, hash]) => {
        const parent = tenants[place % Math.max(1, tenants.length)]?.[0]
        if (parent === undefined || used.has(hash)) return []
        used.add(hash)
        return [key(id, parent, 'file', [hash])]
      }),
    }
  })

const stored = fc.oneof(
  fc.record({
    level: fc.constant('org' as const),
    record: orgId.map((id) => org(id, 'registry')),
    isGone: fc.boolean(),
  }),
  fc.record({
    level: fc.constant('tenant' as const),
    record: fc.tuple(tenantId, orgId, weight).map(([id, parent, weighs]) => tenant(id, parent, 'registry', weighs)),
    isGone: fc.boolean(),
  }),
  fc.record({
    level: fc.constant('key' as const),
    record: fc.tuple(keyId, tenantId, hashes).map(([id, parent, has]) => key(id, parent, 'registry', has)),
    isGone: fc.boolean(),
  }),
)

const namesIn = (map: { entries(): Iterable<readonly [string, unknown]> }): string[] =>
  Array.from(map.entries(), ([name]) => name).sort((a, b) => (a < b ? -1 : 1))

const contentOf = ({ orgs, tenants, keys, keyIdByHash, tenantIds, keyIds }: TenancyTree): object => ({
  records: [orgs, tenants, keys, keyIdByHash].map((map) => new Map<string, unknown>(map.entries())),
  children: [tenantIds, keyIds].map((map) => new Map(Array.from(map.entries(), ([id, set]) => [id, namesIn(set)]))),
})

it('joins anew when the tenant of a key goes that is set aside for its secret: the reason is another', () => {
  const filed = {
    orgs: [org('o1', 'file')],
    tenants: [tenant('t1', 'o1', 'file', 1)],
    keys: [key('k2', 't1', 'file', ['h3'])],
  }
  const gone = tenant('t2', 'o1', 'registry', 1)
  const keys = [key('k1', 't2', 'registry', ['h3'])]
  const joined = loadTree(filed, { orgs: [], tenants: [gone], keys })
  expect(joined.setAside).toEqual([{ level: 'key', id: 'k1', because: 'secret-in-use' }])
  expect(withStored(joined, [{ level: 'tenant', before: gone, after: undefined }])).toBeUndefined()
  const anew = loadTree(filed, { orgs: [], tenants: [], keys })
  expect(anew.setAside).toEqual([{ level: 'key', id: 'k1', because: 'no-parent' }])
})

it('makes the tree that joining anew makes, and mostly without joining anew', () => {
  const counts = { quick: 0, anew: 0 }
  fc.assert(
    fc.property(fc.array(fc.oneof(file, stored, stored, stored), { maxLength: 20 }), (steps) => {
      const kept = { orgs: new Map<string, OrgRecord>(), tenants: new Map(), keys: new Map() }
      let filed: TreeRecords = { orgs: [], tenants: [], keys: [] }
      let joined: LoadedTree = loadTree(filed, filed)
      for (const step of steps) {
        let next: TenancyTree | undefined
        if ('orgs' in step) {
          next = withFile(joined, fileChanges(filed, step, isDeepStrictEqual))
          filed = step
        } else {
          const { level, record, isGone } = step
          const records = kept[`${level}s`] as Map<string, unknown>
          const before = records.get(record.id)
          if (isGone) records.delete(record.id)
          else records.set(record.id, record)
          next = withStored(joined, [{ level, before, after: isGone ? undefined : record } as RecordChange])
        }
        const records = {
          orgs: [...kept.orgs.values()],
          tenants: [...kept.tenants.values()],
          keys: [...kept.keys.values()],
        }
        const anew = loadTree(filed, records)
        counts[next === undefined ? 'anew' : 'quick']++
        if (next !== undefined) expect(contentOf(next)).toEqual(contentOf(anew.tree))
        if (next !== undefined) expect(new Set(joined.setAside)).toEqual(new Set(anew.setAside))
        joined = { tree: next ?? anew.tree, setAside: anew.setAside }
      }
    }),
    { numRuns: 500 },
  )
  expect(counts.quick).toBeGreaterThan(500)
  expect(counts.anew).toBeGreaterThan(100)
})
