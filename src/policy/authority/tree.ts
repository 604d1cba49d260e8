import { PersistentMap } from '../../base/persistent-map.ts'
import type { KeyTerms } from '../../domain/key-terms.ts'
import type { KeyRecord, OrgRecord, TenantRecord, TreeFact } from '../../domain/tenancy.ts'
import { clipTerms } from './clip-terms.ts'

/**
 * Which orgs, tenants and keys are there? The tree as one immutable value.
 *
 *   orgs: id ─▶ org        tenantIds: org id ─▶ its tenants       keyIdByHash: hash of a secret ─▶ key id
 *   tenants: id ─▶ tenant  keyIds: tenant id ─▶ its keys
 *   keys: id ─▶ key
 *
 * All of them are persistent maps, which a change copies along one path: with 100,000 tenants as with ten, a change
 * touches some dozen small nodes. A mutable index would look keys up faster by a fraction of a microsecond; a value lets
 * the caller decide first, store second and put in force last, with nothing to take back when the store fails, and a list
 * that is being read does not change under its reader.
 *
 * A fact is the only way to change a tree: edits become facts (`apply-edit.ts`), and the facts of a store or of another
 * gateway are applied the same way.
 */
export interface TenancyTree {
  readonly orgs: PersistentMap<OrgRecord>
  readonly tenants: PersistentMap<TenantRecord>
  readonly keys: PersistentMap<KeyRecord>
  readonly tenantIds: PersistentMap<PersistentMap<true>>
  readonly keyIds: PersistentMap<PersistentMap<true>>
  readonly keyIdByHash: PersistentMap<string>
  readonly bounds: TreeBounds
}

/** Bounds on what administrators can create: a record takes about a kilobyte of memory, and all are in memory. */
export interface TreeBounds {
  readonly orgsMax: number
  readonly tenantsMax: number
  readonly keysMax: number
  /** Lower than `tenantsMax`, so that one org's administrator cannot use up the platform's. */
  readonly tenantsPerOrgMax: number
  readonly keysPerTenantMax: number
}

export const TREE_BOUNDS: TreeBounds = {
  orgsMax: 100_000,
  tenantsMax: 200_000,
  keysMax: 500_000,
  tenantsPerOrgMax: 20_000,
  keysPerTenantMax: 1_000,
}

export function emptyTree(bounds: Partial<TreeBounds> = {}): TenancyTree {
  return {
    orgs: PersistentMap.empty(),
    tenants: PersistentMap.empty(),
    keys: PersistentMap.empty(),
    tenantIds: PersistentMap.empty(),
    keyIds: PersistentMap.empty(),
    keyIdByHash: PersistentMap.empty(),
    bounds: { ...TREE_BOUNDS, ...bounds },
  }
}

/** A record before and after a change, without the story around it. */
export type RecordChange =
  | { readonly level: 'org'; readonly before: OrgRecord | undefined; readonly after: OrgRecord | undefined }
  | { readonly level: 'tenant'; readonly before: TenantRecord | undefined; readonly after: TenantRecord | undefined }
  | { readonly level: 'key'; readonly before: KeyRecord | undefined; readonly after: KeyRecord | undefined }

/** The tree after a fact. The record that the fact replaces is the tree's own, whatever the fact says. */
export function applyFact(tree: TenancyTree, fact: TreeFact | RecordChange): TenancyTree {
  const id = (fact.after ?? fact.before)?.id
  if (id === undefined) return tree
  switch (fact.level) {
    case 'org':
      return { ...tree, orgs: put(tree.orgs, id, fact.after) }
    case 'tenant':
      return {
        ...tree,
        tenants: put(tree.tenants, id, fact.after),
        tenantIds: moved(tree.tenantIds, id, tree.tenants.get(id)?.orgId, fact.after?.orgId),
      }
    case 'key':
      return {
        ...tree,
        keys: put(tree.keys, id, fact.after),
        keyIds: moved(tree.keyIds, id, tree.keys.get(id)?.tenantId, fact.after?.tenantId),
        keyIdByHash: rehashed(tree.keyIdByHash, tree.keys.get(id), fact.after),
      }
  }
}

/** Terms of everything below an org and a tenant. */
export function tenantTerms(tree: TenancyTree, tenant: TenantRecord): KeyTerms {
  return clipTerms(tree.orgs.get(tenant.orgId)?.terms ?? NOTHING, tenant.terms)
}

/** Terms in force of a key: the common part of its org's, its tenant's and its own. */
export function keyTermsInForce(tree: TenancyTree, key: KeyRecord): KeyTerms {
  const tenant = tree.tenants.get(key.tenantId)
  return clipTerms(tenant === undefined ? NOTHING : tenantTerms(tree, tenant), key.terms)
}

/** What a key and its tenant say, whatever the org does: what administrators of the org can change. */
export function termsBelowOrg(tenant: TenantRecord, key: KeyRecord): KeyTerms {
  return clipTerms(tenant.terms, key.terms)
}

/** The tenant's promise, or its org's first one where the org has lost the tenant's. */
export function sloInForce({ slos }: OrgRecord, { slo }: TenantRecord): string {
  return slos.includes(slo) ? slo : (slos[0] ?? slo)
}

/** A record without its parent may do nothing. */
const NOTHING: KeyTerms = { expiresAtMs: 0, models: [], routes: [], canInfer: false, canManage: false }

function put<V>(map: PersistentMap<V>, id: string, record: V | undefined): PersistentMap<V> {
  return record === undefined ? map.without(id) : map.with(id, record)
}

function moved(
  ids: PersistentMap<PersistentMap<true>>,
  id: string,
  from: string | undefined,
  to: string | undefined,
): PersistentMap<PersistentMap<true>> {
  if (from === to) return ids
  let next = ids
  const left = from === undefined ? undefined : next.get(from)?.without(id)
  if (from !== undefined && left !== undefined) next = left.size === 0 ? next.without(from) : next.with(from, left)
  return to === undefined ? next : next.with(to, (next.get(to) ?? PersistentMap.empty<true>()).with(id, true))
}

function rehashed(
  index: PersistentMap<string>,
  before: KeyRecord | undefined,
  after: KeyRecord | undefined,
): PersistentMap<string> {
  let next = index
  for (const { hash } of before?.secrets ?? []) next = next.without(hash)
  for (const { hash } of after?.secrets ?? []) next = next.with(hash, (after as KeyRecord).id)
  return next
}
