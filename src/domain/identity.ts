import type { Role } from './actor.ts'
import type { Allowance } from './tenant.ts'

/** Who a token is about, and on what terms its issuer is trusted. A key needs none of this: it is known by its hash. */

/** A verified token in our words. */
export interface TokenIdentity {
  /** Our name of the issuer. */
  readonly issuerId: string
  /** The issuer's name of the caller. It may be a person's: it goes into no log and no metric. */
  readonly subject: string
  /** Absent: the token names none, and may have a role only. */
  readonly tenantId?: string
  /**
   * What the caller may do besides sending its tenant's requests: `platform-admin` and `metrics-reader` hold on the whole
   * platform, the others in the org of the token's tenant.
   */
  readonly roles: readonly Role[]
  /** Orgs whose tenants the issuer may name; absent: all. */
  readonly orgIds?: readonly string[]
  /** End of the token. What it administers does not outlive it. */
  readonly expiresAtMs?: number
  /** What one subject may use, within its tenant's allowance. */
  readonly allowance: Allowance
}

/** What the check of a token found. */
export type TokenFinding =
  | { readonly kind: 'known'; readonly identity: TokenIdentity }
  /** The token is wrong; the reason tells nothing of what is in it. */
  | { readonly kind: 'refused'; readonly because: string }
  /** Nobody can tell: the issuer's keys have not been read yet. */
  | { readonly kind: 'unchecked'; readonly because: string }

/** How an issuer's claims become an identity. */
export interface ClaimTerms {
  readonly issuerId: string
  /** The tenant of every token; otherwise the claim says it. */
  readonly tenantId?: string
  readonly tenantClaim: string
  /** Tenants by the claim's values; where it is absent, a value is the tenant's own name. */
  readonly tenants?: ReadonlyMap<string, string>
  /** Orgs whose tenants the issuer may name; absent: all. */
  readonly orgIds?: readonly string[]
  readonly roleClaim?: string
  readonly roles: ReadonlyMap<string, Role>
  readonly allowance: Allowance
}

/** An issuer whose tokens are accepted. */
export interface IssuerTerms extends ClaimTerms {
  /** The `iss` of its tokens, letter for letter. */
  readonly issuer: string
  readonly audiences: readonly string[]
  /** Address of its keys; absent: asked of the issuer (OpenID Connect Discovery). */
  readonly jwksUrl?: string
  readonly algorithms: readonly string[]
  readonly leewayUs: number
  readonly refreshUs: number
}
