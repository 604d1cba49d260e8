import { PersistentMap } from '../../base/persistent-map.ts'
import type { KeyRecord, OrgRecord, TenantRecord } from '../../domain/tenancy.ts'
import { emptyTree, type RecordChange, type TenancyTree, type TreeBounds } from './tree.ts'

/**
 * Which tree do the configuration file and the store make together?
 *
 * The file's records come first and win: a stored record whose id or secret the file has is set aside, and so is one
 * whose parent is missing. A record that is set aside stays in the store, and comes back when the file lets go of it.
 * Stored records are not judged again: what they may do is clipped by their parents at every use (`clip-terms.ts`).
 *
 * Example: the file has tenant a; the store has tenant a with key k1. The tenant is the file's, and k1 is its key.
 */
export interface TreeRecords {
  readonly orgs: readonly OrgRecord[]
  readonly tenants: readonly TenantRecord[]
  readonly keys: readonly KeyRecord[]
}

export interface LoadedTree {
  readonly tree: TenancyTree
  readonly setAside: ReadonlyArray<{
    readonly level: RecordChange['level']
    readonly id: string
    readonly because: SetAside
  }>
}

export type SetAside = 'in-file' | 'no-parent' | 'secret-in-use'

export function loadTree(file: TreeRecords, stored: TreeRecords, bounds: Partial<TreeBounds> = {}): LoadedTree {
  const setAside: Array<LoadedTree['setAside'][number]> = []
  const aside = (level: RecordChange['level'], id: string, because: SetAside): void => {
    setAside.push({ level, id, because })
  }
  const orgs = new Map<string, OrgRecord>()
  const tenants = new Map<string, TenantRecord>()
  const keys = new Map<string, KeyRecord>()
  const keyIdByHash = new Map<string, string>()
  const [tenantIds, keyIds] = [new Map<string, string[]>(), new Map<string, string[]>()]
  // Level by level, so that a stored child finds the file's parent and the other way round.
  for (const org of both(file.orgs, stored.orgs)) {
    if (orgs.has(org.id)) aside('org', org.id, 'in-file')
    else orgs.set(org.id, org)
  }
  for (const tenant of both(file.tenants, stored.tenants)) {
    if (tenants.has(tenant.id)) aside('tenant', tenant.id, 'in-file')
    else if (!orgs.has(tenant.orgId)) aside('tenant', tenant.id, 'no-parent')
    else {
      tenants.set(tenant.id, tenant)
      childrenOf(tenantIds, tenant.orgId).push(tenant.id)
    }
  }
  for (const key of both(file.keys, stored.keys)) {
    if (keys.has(key.id)) aside('key', key.id, 'in-file')
    else if (!tenants.has(key.tenantId)) aside('key', key.id, 'no-parent')
    else if (key.secrets.some(({ hash }) => keyIdByHash.has(hash))) aside('key', key.id, 'secret-in-use')
    else {
      keys.set(key.id, key)
      for (const { hash } of key.secrets) keyIdByHash.set(hash, key.id)
      childrenOf(keyIds, key.tenantId).push(key.id)
    }
  }
  const tree: TenancyTree = {
    ...emptyTree(bounds),
    orgs: PersistentMap.from(orgs),
    tenants: PersistentMap.from(tenants),
    keys: PersistentMap.from(keys),
    tenantIds: PersistentMap.from(setsOf(tenantIds)),
    keyIds: PersistentMap.from(setsOf(keyIds)),
    keyIdByHash: PersistentMap.from(keyIdByHash),
  }
  return { tree, setAside }
}

function* both<R>(file: readonly R[], stored: readonly R[]): Generator<R> {
  yield* file
  yield* stored
}

function childrenOf(ids: Map<string, string[]>, parentId: string): string[] {
  const known = ids.get(parentId)
  if (known !== undefined) return known
  const children: string[] = []
  ids.set(parentId, children)
  return children
}

function* setsOf(ids: ReadonlyMap<string, readonly string[]>): Generator<readonly [string, PersistentMap<true>]> {
  for (const [parentId, children] of ids) {
    yield [parentId, PersistentMap.from(children.map((id) => [id, true] as const))]
  }
}
