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
  | { readonly kind: 'forbidden'; readonly refusal: AuthorityRefusal }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

export interface ListAsk {
  /** Only those of this org or tenant. */
  readonly parentId: string | undefined
  /** Only ids after this one. */
  readonly after: string | undefined
  readonly limit: number
}

/** What the admin API needs of the tenancy tree. */
export interface TenancyAdmin {
  show(level: TreeLevel, id: string): TreeRecord | undefined
  /** In order of ids. */
  list(level: TreeLevel, ask: ListAsk): readonly TreeRecord[]
  change(operator: string, edit: AskedEdit): Promise<TenancyReply>
  history(ask: {
    readonly id?: string | undefined
    readonly limit: number
  }): Promise<readonly StoredFact[] | AdminRefusal>
}
