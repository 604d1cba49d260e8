import type { Actor, KeyRole, Role } from './actor.ts'
import type { StoringTerms } from './archive.ts'
import type { KeySecret, KeyTerms, TermsPatch } from './key-terms.ts'
import type { ScreeningWish } from './screening.ts'
import type { AnswerCacheTerms } from './tenant.ts'

/**
 * The tree of org → tenant → key as it is administered: its records, the edits that change them, and what the history
 * keeps of an edit. Fairness uses the same tree.
 */

/** Records of the configuration file are read-only at run time: the file wins where both speak. */
export type RecordSource = 'file' | 'registry'

export interface OrgRecord {
  readonly id: string
  readonly source: RecordSource
  /**
   * Weight among orgs. Absent only where the configuration file gives none: the org then weighs as much as its tenants
   * that have something waiting.
   */
  readonly weight?: number
  /** Names of the promises that the org's tenants may have; the first one is the default. */
  readonly slos: readonly string[]
  readonly terms: KeyTerms
}

export interface TenantRecord {
  readonly id: string
  readonly orgId: string
  readonly source: RecordSource
  readonly weight: number
  readonly slo: string
  readonly contract: 'degrade' | 'reject'
  readonly bidMax: number
  /** Absent: the platform's own longest wait. */
  readonly queueUsMax?: number
  readonly answerCache?: AnswerCacheTerms
  readonly storing?: StoringTerms
  readonly screening?: ScreeningWish
  readonly terms: KeyTerms
}

export interface KeyRecord {
  readonly id: string
  readonly tenantId: string
  readonly source: RecordSource
  readonly weight: number
  /** Counts only with `canManage`. */
  readonly role: KeyRole
  /** Oldest first. */
  readonly secrets: readonly KeySecret[]
  readonly terms: KeyTerms
}

/** An edit as it is asked for, with the reason that the history keeps. */
export type TreeEdit = { readonly because: string } & (
  | ({ readonly kind: 'create-org'; readonly id: string } & OrgFields)
  | ({ readonly kind: 'change-org'; readonly id: string } & OrgFields)
  | ({ readonly kind: 'create-tenant'; readonly id: string; readonly orgId: string } & TenantFields)
  | ({ readonly kind: 'change-tenant'; readonly id: string } & TenantFields)
  | ({ readonly kind: 'create-key'; readonly id: string; readonly tenantId: string; readonly hash: string } & KeyFields)
  | ({ readonly kind: 'change-key'; readonly id: string } & KeyFields)
  | { readonly kind: 'remove-org' | 'remove-tenant' | 'remove-key'; readonly id: string }
  | RotateKey
  | { readonly kind: 'revoke-secret'; readonly id: string; readonly hash: string }
)

interface OrgFields {
  readonly weight?: number
  readonly slos?: readonly string[]
  readonly terms?: TermsPatch
}

interface TenantFields {
  readonly weight?: number
  readonly slo?: string
  readonly contract?: 'degrade' | 'reject'
  readonly bidMax?: number
  readonly queueUsMax?: number | null
  readonly answerCache?: AnswerCacheTerms | null
  /** Parts that are absent stay as they are, or are the defaults; null ends storing. */
  readonly storing?: Partial<StoringTerms> | null
  /** The whole wish; null: the platform's policy. */
  readonly screening?: ScreeningWish | null
  readonly terms?: TermsPatch
}

interface KeyFields {
  readonly weight?: number
  readonly role?: KeyRole
  readonly terms?: TermsPatch
}

/** A new secret. The one before lives on for the grace; with a grace of 0 all older secrets end at once. */
interface RotateKey {
  readonly kind: 'rotate-key'
  readonly id: string
  readonly hash: string
  readonly graceMs: number
}

/** What one edit did to one record: enough to store it, and to tell later who changed what and why. */
export type TreeFact = {
  readonly atMs: number
  readonly by: string
  readonly byKind: Actor['kind']
  readonly role: Role
  readonly because: string
  readonly edit: TreeEdit['kind']
  readonly orgId: string
} & (
  | { readonly level: 'org'; readonly before: OrgRecord | undefined; readonly after: OrgRecord | undefined }
  | { readonly level: 'tenant'; readonly before: TenantRecord | undefined; readonly after: TenantRecord | undefined }
  | { readonly level: 'key'; readonly before: KeyRecord | undefined; readonly after: KeyRecord | undefined }
)

/** Whose authority refuses an edit. */
export type AuthorityHolder =
  | { readonly kind: 'platform' | 'configuration-file' }
  | { readonly kind: 'org' | 'tenant' | 'key'; readonly id: string }
  | { readonly kind: 'role'; readonly id: Role }

/** Rules that an administrative call can break. */
export type AuthorityRule =
  | 'role-allows'
  | 'own-org'
  | 'own-tenant'
  | 'actor-is-live'
  | 'file-wins'
  | 'exists'
  | 'id-is-free'
  | 'id-is-plain'
  | 'text-is-plain'
  | 'value-is-valid'
  | 'within-bound'
  | 'org-is-empty'
  | 'org-has-weight'
  | 'slo-of-org'
  | 'role-within-actor'
  | 'canManage-with-new-secret'
  | 'hash-is-new'
  | 'two-live-secrets'
  | 'grace-within-week'
  | `${keyof KeyTerms}-within-parent`
  | `${'notBeforeAtMs' | 'expiresAtMs' | 'clientRanges'}-within-actor`

/** A refusal that says which rule an administrative call broke, and whose authority the rule protects. */
export interface AuthorityRefusal {
  readonly rule: AuthorityRule
  readonly authority: AuthorityHolder
  /** The part of the call that broke the rule, as `terms.models`. */
  readonly param: string | null
  /** What is wrong, why, and what to do: a sentence that follows the name of the rule. */
  readonly because: string
}
