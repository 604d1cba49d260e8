import type { KeyRole, OrgActor, Role } from '../../domain/actor.ts'
import type { KeyTerms } from '../../domain/key-terms.ts'
import { clipTerms } from './clip-terms.ts'
import { timeProblem } from './find-key.ts'
import { type TenancyTree, tenantTerms } from './tree.ts'

/**
 * For whom does a token of an identity provider administer?
 *
 * The token names a tenant, and its role counts in that tenant's org. The actor's terms are the tenant's and the token's
 * own end, so a managing key that a token makes does not outlive the token: whoever leaves the identity provider keeps
 * nothing. A tenant or org that may not manage, or whose time is over, has no such actors.
 *
 * Of several roles the first one of `ORG_ROLES_OF_TOKENS` counts. A token's `metrics-reader` and `platform-admin` hold on
 * the platform and give nothing here.
 * Example: a token of tenant shop in org acme with the role org-admin until 12:00 makes a key without canManage for ever,
 * and one with canManage until 12:00.
 */
export interface TokenClaim {
  readonly name: string
  readonly tenantId: string
  readonly role: KeyRole
  readonly terms: KeyTerms
}

const ORG_ROLES_OF_TOKENS = ['org-admin', 'auditor', 'billing-reader', 'member'] as const satisfies readonly KeyRole[]

export function orgRoleOf(roles: readonly Role[]): KeyRole | undefined {
  return ORG_ROLES_OF_TOKENS.find((role) => roles.includes(role))
}

export function actorOfToken(tree: TenancyTree, claim: TokenClaim, nowMs: number): OrgActor | undefined {
  const { name, tenantId, role } = claim
  const tenant = tree.tenants.get(tenantId)
  if (tenant === undefined) return undefined
  const inForce = clipTerms(tenantTerms(tree, tenant), claim.terms)
  if (inForce.canManage === false || timeProblem(inForce, nowMs) !== undefined) return undefined
  const terms = clipTerms(tenant.terms, claim.terms)
  return { kind: 'org-actor', name, orgId: tenant.orgId, tenantId, role, terms }
}
