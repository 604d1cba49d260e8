import type { Instant } from '../base/clock.ts'
import type { ArchiveErasure, NotArchived } from './archive.ts'
import type { TreeEdit } from './tenancy.ts'

/** Entries of the journal about the platform as a whole. */

/** An org, a tenant or a key was made, changed or removed at run time: by whom, and why. */
export interface TenancyChanged {
  readonly kind: 'tenancy-changed'
  readonly at: Instant
  readonly edit: TreeEdit['kind']
  readonly level: 'org' | 'tenant' | 'key'
  readonly name: string
  readonly orgId: string
  readonly by: string
  readonly because: string
}

export interface PlatformChanged {
  readonly kind: 'platform-changed'
  readonly at: Instant
  readonly state: 'starting' | 'ready' | 'draining' | 'stopped'
  readonly because: string
}

/** Where the spool and the ledger stand, told every second. Counts only grow. */
export interface LedgerReported {
  readonly kind: 'ledger-reported'
  readonly at: Instant
  readonly spool: { readonly refused: number; readonly diskBytes: number; readonly commitUsMax: number }
  readonly keeper: { readonly written: number; readonly waiting: number; readonly isStoreAway: boolean }
}

/** Answers that clients asked to store were written, or were lost and why. Nothing of the answers themselves. */
export interface ArchiveWritten {
  readonly kind: 'archive-written'
  readonly at: Instant
  readonly outcome: 'kept' | NotArchived
  readonly count: number
}

/** Stored answers were erased without a client's order. */
export interface ArchiveErased {
  readonly kind: 'archive-erased'
  readonly at: Instant
  readonly because: ArchiveErasure
  readonly count: number
}
