import type { KeyRecord, OrgRecord, TenantRecord } from '../../domain/tenancy.ts'
import { applyFact, emptyTree, type RecordChange, type TenancyTree, type TreeBounds } from './tree.ts'

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
  let tree = emptyTree(bounds)
  const add = (change: RecordChange, because: SetAside | undefined): void => {
    if (because === undefined) tree = applyFact(tree, change)
    else if (change.after !== undefined) setAside.push({ level: change.level, id: change.after.id, because })
  }
  // Level by level, so that a stored child finds the file's parent and the other way round.
  for (const org of [...file.orgs, ...stored.orgs]) {
    add({ level: 'org', before: undefined, after: org }, tree.orgs.has(org.id) ? 'in-file' : undefined)
  }
  for (const tenant of [...file.tenants, ...stored.tenants]) {
    const because = tree.tenants.has(tenant.id) ? 'in-file' : tree.orgs.has(tenant.orgId) ? undefined : 'no-parent'
    add({ level: 'tenant', before: undefined, after: tenant }, because)
  }
  for (const key of [...file.keys, ...stored.keys]) {
    add({ level: 'key', before: undefined, after: key }, keyProblem(tree, key))
  }
  return { tree, setAside }
}

function keyProblem(tree: TenancyTree, { id, tenantId, secrets }: KeyRecord): SetAside | undefined {
  if (tree.keys.has(id)) return 'in-file'
  if (!tree.tenants.has(tenantId)) return 'no-parent'
  return secrets.some(({ hash }) => tree.keyIdByHash.has(hash)) ? 'secret-in-use' : undefined
}
