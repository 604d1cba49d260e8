import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { KeyRecord, OrgRecord, TenantRecord } from '../domain/tenancy.ts'
import type { TreeLevel } from '../gateway/tenancy-admin.ts'
import { applyFact, emptyTree, type RecordChange, sloInForce, type TenancyTree } from '../policy/authority/tree.ts'
import { TenancyIndex } from './tenancy-index.ts'

const oneOf = (...names: string[]) => fc.constantFrom(...names)
const slos = fc.uniqueArray(oneOf('steady', 'patient', 'quick'), { minLength: 1 })
const source = 'registry'
const record = fc.oneof(
  fc.tuple(oneOf('o1', 'o2'), slos).map(([id, has]): RecordChange => {
    const after: OrgRecord = { id, source, slos: has, terms: {} }
    return { level: 'org', before: undefined, after }
  }),
  fc
    .tuple(oneOf('t1', 't2', 't3'), oneOf('o1', 'o2'), oneOf('steady', 'quick'))
    .map(([id, orgId, slo]): RecordChange => {
      const after: TenantRecord = { id, orgId, source, weight: 1, slo, contract: 'degrade', bidMax: 0, terms: {} }
      return { level: 'tenant', before: undefined, after }
    }),
  fc.tuple(oneOf('k1', 'k2'), oneOf('t1', 't2')).map(([id, tenantId]): RecordChange => {
    const after: KeyRecord = { id, tenantId, source, weight: 1, role: 'member', secrets: [], terms: {} }
    return { level: 'key', before: undefined, after }
  }),
)

/** The change as the tree has it: with what was there before, and its end where it is to go. */
function changeIn(tree: TenancyTree, { level, after }: RecordChange, isGone: boolean): RecordChange {
  const before = tree[`${level}s`].get(after?.id ?? '')
  return { level, before, after: isGone ? undefined : after } as RecordChange
}

const naive = (tree: TenancyTree, level: TreeLevel, parentId: string | undefined): string[] =>
  [...tree[`${level}s`].entries()]
    .filter(
      ([, one]) =>
        parentId === undefined || ('orgId' in one ? one.orgId : 'tenantId' in one && one.tenantId) === parentId,
    )
    .map(([id]) => id)
    .sort()

const naivePromises = (tree: TenancyTree): string[] =>
  [...tree.tenants.entries()].flatMap(([, tenant]) => {
    const org = tree.orgs.get(tenant.orgId)
    return org === undefined ? [] : [sloInForce(org, tenant)]
  })

it('lists and counts what a search of the whole tree finds, after any changes', () => {
  const step = fc.record({ change: record, isGone: fc.boolean(), isAnew: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      let tree = emptyTree()
      const index = new TenancyIndex(tree)
      for (const { change, isGone, isAnew } of steps) {
        const real = changeIn(tree, change, isGone)
        tree = applyFact(tree, real)
        if (isAnew) index.follow(tree)
        else index.follow(tree, [real])
        for (const [level, parentId] of ASKS) {
          const expected = naive(tree, level, parentId)
          expect(index.list(level, { parentId, after: undefined, limit: 10 })).toEqual(expected)
          expect(index.list(level, { parentId, after: 't1', limit: 1 })).toEqual(
            expected.filter((id) => id > 't1').slice(0, 1),
          )
        }
        expect(new Set(index.promises())).toEqual(new Set(naivePromises(tree)))
      }
    }),
  )
})

const ASKS: ReadonlyArray<readonly [TreeLevel, string | undefined]> = [
  ['org', undefined],
  ['tenant', undefined],
  ['tenant', 'o1'],
  ['key', undefined],
  ['key', 't1'],
]
