import type { OrgActor } from '../../domain/actor.ts'
import type { AuthorityRefusal, KeyRecord, OrgRecord, TenantRecord } from '../../domain/tenancy.ts'
import { mayDo } from './may-do.ts'
import type { RecordChange, TenancyTree } from './tree.ts'

/**
 * Which records may somebody of an org read?
 *
 * Those of its own org; a member those of its own tenant. A record out of reach is not told apart from one that does not
 * exist, and is not touched: lists begin at the actor's own org or tenant, so that their cost does not tell how many
 * others there are.
 *
 * Example: the auditor of acme lists the tenants of acme; asked for those of globex, or of an org that nobody has, the
 * list is empty.
 */
export type ReadableRecord = OrgRecord | TenantRecord | KeyRecord

/** Whether the role reads the tree at all. */
export function readRefusal(actor: OrgActor, action: 'read-tree' | 'read-history'): AuthorityRefusal | undefined {
  const ruling = mayDo(actor, action, actor)
  return ruling.kind === 'refused' ? ruling.refusal : undefined
}

export function recordInReach(
  tree: TenancyTree,
  actor: OrgActor,
  level: RecordChange['level'],
  id: string,
): ReadableRecord | undefined {
  if (level === 'org') return id === actor.orgId && isRead(actor, {}) ? tree.orgs.get(id) : undefined
  if (level === 'tenant') return tenantRead(tree, actor, id)
  const key = tree.keys.get(id)
  return key !== undefined && tenantRead(tree, actor, key.tenantId) !== undefined ? key : undefined
}

/** Ids in no order. `parentId`: only those of this org or tenant. */
export function idsInReach(
  tree: TenancyTree,
  actor: OrgActor,
  level: RecordChange['level'],
  parentId: string | undefined,
): readonly string[] {
  if (level === 'org') return recordInReach(tree, actor, level, actor.orgId) === undefined ? [] : [actor.orgId]
  if (level === 'tenant') return parentId === undefined || parentId === actor.orgId ? tenantsRead(tree, actor) : []
  const tenantIds = parentId === undefined ? tenantsRead(tree, actor) : [parentId]
  return tenantIds.flatMap((tenantId) => (tenantRead(tree, actor, tenantId) ? idsOf(tree.keyIds.get(tenantId)) : []))
}

function tenantsRead(tree: TenancyTree, actor: OrgActor): readonly string[] {
  if (!isRead(actor, {})) return tenantRead(tree, actor, actor.tenantId) === undefined ? [] : [actor.tenantId]
  return idsOf(tree.tenantIds.get(actor.orgId))
}

function tenantRead(tree: TenancyTree, actor: OrgActor, id: string): TenantRecord | undefined {
  const tenant = tree.tenants.get(id)
  return tenant?.orgId === actor.orgId && isRead(actor, { tenantId: id }) ? tenant : undefined
}

const isRead = (actor: OrgActor, where: { readonly tenantId?: string }): boolean =>
  mayDo(actor, 'read-tree', { orgId: actor.orgId, ...where }).kind === 'allowed'

const idsOf = (ids: { entries(): Iterable<readonly [string, true]> } | undefined): string[] =>
  ids === undefined ? [] : [...ids.entries()].map(([id]) => id)
