import type { KeyTerms } from './key-terms.ts'

/**
 * An actor is who administers: an operator of the platform, or somebody of one org. The two are different types, and
 * nothing turns one into the other: operators come from the configuration file, and no edit of the tree makes one.
 */
export type Actor = Operator | OrgActor

export interface Operator {
  readonly kind: 'operator'
  /** Name in the journal. */
  readonly name: string
  readonly role: OperatorRole
}

export interface OrgActor {
  readonly kind: 'org-actor'
  readonly name: string
  readonly orgId: string
  /** The actor's own tenant: a member sees no other one. */
  readonly tenantId: string
  readonly role: KeyRole
  /** The key and the secret that the actor called with; absent where a token of an identity provider spoke for it. */
  readonly credential?: { readonly keyId: string; readonly hash: string }
  /**
   * Terms of that secret or token below the org: the tenant's, the key's, the secret's end. A managing key that the actor
   * makes does not exceed them. The org's own terms are left out: they bind all of its keys alike, and only operators
   * change them.
   */
  readonly terms: KeyTerms
}

export const ROLES = ['platform-admin', 'org-admin', 'billing-reader', 'auditor', 'metrics-reader', 'member'] as const

export type Role = (typeof ROLES)[number]

/** Roles of operators. */
export type OperatorRole = Exclude<Role, 'org-admin' | 'member'>

/** Roles of keys, within the key's org. */
export type KeyRole = Exclude<Role, 'platform-admin'>

export const KEY_ROLES: readonly KeyRole[] = ['org-admin', 'billing-reader', 'auditor', 'metrics-reader', 'member']

/** What roles allow. `change-org` is to create, change and remove orgs; the other changes likewise. */
export type AdminAction =
  | 'change-org'
  | 'change-tenant'
  | 'change-key'
  | 'read-tree'
  | 'read-cost'
  | 'read-history'
  | 'read-metrics'
