import { secondsToUs } from '../base/clock.ts'
import type { IssuerTerms } from '../domain/identity.ts'
import type { Settings } from './schema.ts'
import { toAllowance } from './to-domain.ts'

/** The issuers of tokens as the domain knows them. */
export function toIssuers({ oidc }: Pick<Settings, 'oidc'>): IssuerTerms[] {
  return oidc.issuers.map((one) => ({
    issuerId: one.id,
    issuer: one.issuer,
    audiences: one.audience,
    algorithms: one.algorithms,
    leewayUs: secondsToUs(one.leewayS),
    refreshUs: secondsToUs(one.refreshS),
    tenantClaim: one.tenantClaim ?? 'tenant',
    roles: new Map(Object.entries(one.roles)),
    allowance: toAllowance(one.allowance),
    ...(one.jwksUrl !== undefined && { jwksUrl: one.jwksUrl }),
    ...(one.tenant !== undefined && { tenantId: one.tenant }),
    ...(one.tenants !== undefined && { tenants: new Map(Object.entries(one.tenants)) }),
    ...(one.orgs !== undefined && { orgIds: one.orgs }),
    ...(one.roleClaim !== undefined && { roleClaim: one.roleClaim }),
  }))
}
