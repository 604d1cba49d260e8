import type { Actor, AdminAction, Role } from '../../domain/actor.ts'
import type { AuthorityRefusal } from '../../domain/tenancy.ts'

/**
 * May this actor do this to that target?
 *
 * A table of roles and actions, and two bounds on where: an operator's role holds on the whole platform, a key's role in
 * the key's own org, and a member's in its own tenant. Roles only say what kind of call is allowed; how far a change may
 * go is said by `narrow.ts` (terms) and `edit-key.ts` (managing keys).
 *
 * An org's administrator does not change its own org: the org's weight and terms are what the platform gave.
 * Example: the auditor of org acme may read acme's history, and neither acme's costs nor the history of another org.
 */
export type Ruling = { readonly kind: 'allowed' } | { readonly kind: 'refused'; readonly refusal: AuthorityRefusal }

/** Where an action takes place; without an org, on the whole platform. */
export interface AdminTarget {
  readonly orgId?: string
  /** Without a tenant, the whole org. */
  readonly tenantId?: string
}

const READS: readonly AdminAction[] = ['read-tree', 'read-cost', 'read-history', 'read-metrics']

const ACTIONS: Readonly<Record<Role, readonly AdminAction[]>> = {
  'platform-admin': ['change-org', 'change-tenant', 'change-key', ...READS],
  'org-admin': ['change-tenant', 'change-key', ...READS],
  'billing-reader': ['read-cost'],
  auditor: ['read-tree', 'read-history'],
  'metrics-reader': ['read-metrics'],
  member: ['read-tree', 'read-cost'],
}

export function mayDo(actor: Actor, action: AdminAction, target: AdminTarget): Ruling {
  const { role } = actor
  if (!ACTIONS[role].includes(action)) return refused(roleRefusal(role, action))
  if (actor.kind === 'operator') return ALLOWED
  const org = { kind: 'org', id: actor.orgId } as const
  if (target.orgId !== actor.orgId) {
    const because = `the actor belongs to the org ${actor.orgId}, and its authority ends there`
    return refused({ rule: 'own-org', authority: org, param: 'orgId', because })
  }
  if (role === 'member' && target.tenantId !== actor.tenantId) {
    const tenant = { kind: 'tenant', id: actor.tenantId } as const
    const because = `a member of the tenant ${actor.tenantId} sees that tenant and no other one`
    return refused({ rule: 'own-tenant', authority: tenant, param: 'tenantId', because })
  }
  return ALLOWED
}

/** Whether the outer role allows everything that the inner one does, wherever that does: a member's end at its tenant. */
export function isRoleWithin(outer: Role, inner: Role): boolean {
  if (outer === 'member' && inner !== 'member') return false
  return ACTIONS[inner].every((action) => ACTIONS[outer].includes(action))
}

const ALLOWED: Ruling = { kind: 'allowed' }

const refused = (refusal: AuthorityRefusal): Ruling => ({ kind: 'refused', refusal })

function roleRefusal(role: Role, action: AdminAction): AuthorityRefusal {
  const able = (Object.keys(ACTIONS) as Role[]).filter((other) => ACTIONS[other].includes(action))
  const because = `the role ${role} does not include ${action}. Ask somebody with the role ${able.join(' or ')}`
  // Whoever may and is nearest: an org's own administrator, where one may.
  const holder = able.includes('org-admin') ? 'org-admin' : 'platform-admin'
  return { rule: 'role-allows', authority: { kind: 'role', id: holder }, param: null, because }
}
