import type { KeyRole } from '../domain/actor.ts'
import type { TokenIdentity } from '../domain/identity.ts'
import type { KeyTerms } from '../domain/key-terms.ts'
import type { AuthorityRefusal, KeyRecord, OrgRecord, TenantRecord, TreeEdit } from '../domain/tenancy.ts'
import type { StoredFact } from '../domain/tenancy-store.ts'
import type { AnswerCacheTerms } from '../domain/tenant.ts'
import type { AdminRefusal } from './fleet-admin.ts'

/** An edit as an administrator asks for it: hashes of new secrets are made by the server, and old ones are named short. */
export type AskedEdit =
  | Exclude<
      TreeEdit,
      { readonly kind: 'create-key' | 'rotate-key' | 'revoke-secret' | 'create-tenant' | 'change-tenant' }
    >
  | AskedTenant<'create-tenant'>
  | AskedTenant<'change-tenant'>
  | Omit<Extract<TreeEdit, { readonly kind: 'create-key' }>, 'hash'>
  | Omit<Extract<TreeEdit, { readonly kind: 'rotate-key' }>, 'hash'>
  | (Omit<Extract<TreeEdit, { readonly kind: 'revoke-secret' }>, 'hash'> & { readonly hashPrefix: string })

/** Terms of the answer cache that are not named are the configuration file's defaults. */
type AskedTenant<Kind extends TreeEdit['kind']> = Omit<Extract<TreeEdit, { readonly kind: Kind }>, 'answerCache'> & {
  readonly answerCache?: Partial<AnswerCacheTerms> | null
}

export type TreeRecord = OrgRecord | TenantRecord | KeyRecord

export type TreeLevel = 'org' | 'tenant' | 'key'

export type TenancyReply =
  | {
      readonly kind: 'changed'
      readonly revision: number
      /** The record that was asked for, after the change; undefined when it was removed. */
      readonly record: TreeRecord | undefined
      /** A new secret, told once: nothing keeps it. */
      readonly secret: string | undefined
    }
  | TenancyDenied

export type TenancyDenied =
  | { readonly kind: 'forbidden'; readonly refusal: AuthorityRefusal }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

export type TenancySight<T> = { readonly kind: 'seen'; readonly value: T } | TenancyDenied

export interface ListAsk {
  /** Only those of this org or tenant. */
  readonly parentId: string | undefined
  /** Only ids after this one. */
  readonly after: string | undefined
  readonly limit: number
}

export interface TenancyHistoryAsk {
  readonly id?: string | undefined
  readonly limit: number
}

/**
 * Orgs, tenants and keys as one administrator sees and changes them. What is out of an administrator's reach is answered
 * as if it did not exist.
 */
export interface TenancyDesk {
  show(level: TreeLevel, id: string): Promise<TenancySight<TreeRecord>>
  /** In order of ids. */
  list(level: TreeLevel, ask: ListAsk): Promise<TenancySight<readonly TreeRecord[]>>
  change(edit: AskedEdit): Promise<TenancyReply>
  /** Newest first. */
  history(ask: TenancyHistoryAsk): Promise<TenancySight<readonly StoredFact[]>>
}

/** What calls with tenants' credentials have to show: the digest of a secret, or what a token proved. */
export type TenantCredential = { readonly digest: string } | { readonly identity: TokenIdentity }

/** Where a caller stands in the tree. */
export interface TreeStanding {
  readonly org: OrgRecord
  readonly tenant: TenantRecord
  /** Absent: a token, which has no key. */
  readonly key?: KeyRecord
  /** The caller's terms in force. */
  readonly terms: KeyTerms
  /** The role that counts; undefined: the caller does not manage. */
  readonly role: KeyRole | undefined
}

export interface TenancyAdmin {
  asOperator(name: string): TenancyDesk
  /** Undefined: the key or token does not manage. */
  asTenant(credential: TenantCredential): TenancyDesk | undefined
  standingOf(credential: TenantCredential): Promise<TreeStanding | undefined>
  /** The org whose costs the caller may read, beyond those of its own tenant; undefined: none. */
  costOrgOf(credential: TenantCredential): string | undefined
  /** Who reads the history of which org; undefined: the caller may not. */
  historyReaderOf(credential: TenantCredential): { readonly name: string; readonly orgId: string } | undefined
}
