import type { KeyRecord, OrgRecord, TenantRecord, TreeFact } from './tenancy.ts'

/** Records as they were stored, and the number of the write that made them so. */
export interface TenancyState {
  readonly revision: number
  readonly orgs: readonly OrgRecord[]
  readonly tenants: readonly TenantRecord[]
  readonly keys: readonly KeyRecord[]
}

export interface TenancyWrite {
  /** The revision that the facts were decided on; another one in the store makes the write stale. */
  readonly expectedRevision: number
  readonly facts: readonly TreeFact[]
}

/** A stored fact with the number of its write. */
export type StoredFact = TreeFact & { readonly revision: number }

/** Which facts of the history are asked for; an absent part asks for all. */
export interface FactsAsk {
  readonly id?: string | undefined
  readonly level?: TreeFact['level']
  /** Only those of this org, since it was made: an org before it may have had the same id. */
  readonly orgId?: string
  readonly limit: number
}

/**
 * Keeps what was made at run time of orgs, tenants and keys, with the history of their changes. A write is stored whole,
 * records and facts, or not at all. Secrets are hashes here as everywhere.
 */
export interface TenancyStore {
  load(): Promise<TenancyState>
  revision(): Promise<number>
  write(write: TenancyWrite): Promise<number | 'stale'>
  /** Facts after a revision, oldest first. */
  since(revision: number, limit: number): Promise<readonly StoredFact[]>
  /** Newest first. */
  history(ask: FactsAsk): Promise<readonly StoredFact[]>
  /** Keeps the latest use of each secret, by hash, and forgets those of secrets that are gone. Makes no revision. */
  noteUses(noted: { readonly uses: ReadonlyMap<string, number>; readonly gone: readonly string[] }): Promise<void>
  /** Last uses of these secrets, as far as any is known. */
  usesOf(hashes: readonly string[]): Promise<ReadonlyMap<string, number>>
}
