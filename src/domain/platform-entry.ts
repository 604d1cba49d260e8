import type { Instant } from '../base/clock.ts'
import type { ArchiveErasure, NotArchived } from './archive.ts'
import type { TreeEdit } from './tenancy.ts'

/** Entries of the journal about the platform as a whole. */
export type PlatformEntry =
  | TenancyChanged
  | ConfigChanged
  | PlatformChanged
  | SharingChanged
  | SharingReported
  | LedgerReported
  | AuditReported
  | BudgetMarked
  | BudgetsReported
  | ArchiveWritten
  | ArchiveErased
  | BreakerChanged
  | DocumentIndexed
  | IngressRefused
  | RolloutMemoryWritten
  | RolloutFollowed
  | LeaderChanged
  | TenantPaused
  | ModeChanged

/** An org, a tenant or a key was made, changed or removed at run time: by whom, and why. */
export interface TenancyChanged {
  readonly kind: 'tenancy-changed'
  readonly at: Instant
  readonly edit: TreeEdit['kind']
  readonly level: 'org' | 'tenant' | 'key'
  readonly name: string
  readonly orgId: string
  /** The key's tenant. */
  readonly tenantId?: string | undefined
  /** Parts of the record that are others now, as `terms.allowance`. */
  readonly changed?: readonly string[]
  readonly by: string
  readonly because: string
}

/** The configuration was read: at the start, or again. */
export interface ConfigChanged {
  readonly kind: 'config-changed'
  readonly at: Instant
  readonly by: string
  readonly because: string
  readonly summary: string
  /** Hash of the settings in force, without secrets. */
  readonly version: string
}

export interface PlatformChanged {
  readonly kind: 'platform-changed'
  readonly at: Instant
  readonly state: 'starting' | 'ready' | 'draining' | 'stopped'
  readonly because: string
}

/** How the limits that gateways share stand: `shared`, or `alone` at its safe share because the lease store is silent. */
export type SharingState = 'shared' | 'alone'

/** This gateway and the lease store began or stopped hearing each other. */
export interface SharingChanged {
  readonly kind: 'sharing-changed'
  readonly at: Instant
  readonly state: SharingState
  readonly gatewayCount: number
  readonly because: string
}

/** The state of shared limits, once a second; counts are since the last report. */
export interface SharingReported {
  readonly kind: 'sharing-reported'
  readonly at: Instant
  /** Gateways that share the limits, as the store last told, and how many of them the store did not hear. */
  readonly gatewayCount: number
  readonly silentCount: number
  /** Shards of the store that do not answer this gateway. */
  readonly silentShardCount: number
  /** Since the oldest of the shards' last answers. */
  readonly answerAgeUs: number
  /** Silence beyond which the store has forgotten this gateway, so that others have its share too; 0 before. */
  readonly beyondForgetUs: number
  /** Time for which silent gateways may have admitted their share on top of each limit: L4's bound over the rate. */
  readonly excessUs: number
  readonly callCount: number
  readonly answerCount: number
  readonly accountCount: number
  /** Requests that were larger than their slice and waited for the store, and those of them that got an answer. */
  readonly fetchCount: number
  readonly fetchedCount: number
}

/** Where the spool and the ledger stand, told every second. Counts only grow. */
export interface LedgerReported {
  readonly kind: 'ledger-reported'
  readonly at: Instant
  readonly spool: { readonly refused: number; readonly diskBytes: number; readonly commitUsMax: number }
  readonly keeper: { readonly written: number; readonly waiting: number; readonly isStoreAway: boolean }
}

/** Where the audit stands, told every second. Counts only grow. */
export interface AuditReported {
  readonly kind: 'audit-reported'
  readonly at: Instant
  readonly spool: {
    readonly committed: number
    readonly diskBytes: number
    readonly commitUsMax: number
    readonly tornBytes: number
    readonly isInTrouble: boolean
  }
  /** Events that a full audit did not take. */
  readonly lost: number
  /** Keys of subjects that are written nowhere. */
  readonly keysLost: number
  /** Events that the last checkpoint has, and when it was signed. */
  readonly checkpointSize: number
  readonly checkpointAtMs: number
  /** The copy in the database; undefined where there is none. */
  readonly copy: { readonly copied: number; readonly waiting: number; readonly isStoreAway: boolean } | undefined
  readonly sinks: readonly {
    readonly name: string
    readonly sent: number
    readonly failed: number
    readonly dropped: number
    readonly isAway: boolean
  }[]
}

/** A budget has come to one of its marks: once for each period and mark. */
export interface BudgetMarked {
  readonly kind: 'budget-marked'
  readonly at: Instant
  /** The same for the same mark of the same period, whichever gateway tells it. */
  readonly id: string
  readonly scope: 'org' | 'tenant' | 'key' | 'model' | 'user'
  readonly scopeId: string
  /** `day`, `month`, `24h`. */
  readonly period: string
  readonly isHard: boolean
  readonly mark: number
  readonly usedNano: number
  readonly nanoMax: number | undefined
  readonly usedTokens: number
  readonly tokensMax: number | undefined
  readonly resetsAt: Instant
}

/** What is left of the tightest budgets; a bounded number of them. */
export interface BudgetsReported {
  readonly kind: 'budgets-reported'
  readonly at: Instant
  readonly budgets: readonly {
    readonly scope: BudgetMarked['scope']
    readonly scopeId: string
    readonly period: string
    readonly isHard: boolean
    readonly leftRatio: number
  }[]
  /** Budgets in memory whose use is not known yet. */
  readonly unknownCount: number
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

/** A breaker opened after failures of a part that requests use, or closed again. */
export interface BreakerChanged {
  readonly kind: 'breaker-changed'
  readonly at: Instant
  readonly what: string
  readonly state: 'open' | 'closed'
  /** The last failure, in the operator's words. */
  readonly because?: string
}

/** A document's indexing has ended: the document is in its corpus, or failed for good. */
export interface DocumentIndexed {
  readonly kind: 'document-indexed'
  readonly at: Instant
  readonly tenantId: string
  readonly status: 'completed' | 'failed'
  readonly passageCount: number
  readonly tookUs: number
  readonly because: string
}

/** Requests were turned away before they were read: this many since the last such entry, which is a second ago or more. */
export interface IngressRefused {
  readonly kind: 'ingress-refused'
  readonly at: Instant
  readonly code: string
  readonly count: number
}

/**
 * How far a rollout has got was written for the next process (`kept`), could not be and is tried again (`failed`),
 * never was before the process ended (`lost`), or was not this gateway's to decide (`overruled`).
 */
export interface RolloutMemoryWritten {
  readonly kind: 'rollout-memory'
  readonly at: Instant
  readonly model: string
  readonly outcome: 'kept' | 'failed' | 'lost' | 'overruled'
  readonly because: string
}

/** Another gateway has changed a rollout, or an earlier process had: this is where it stands here from now on. */
export interface RolloutFollowed {
  readonly at: Instant
  readonly kind: 'rollout-followed'
  readonly model: string
  readonly from: string
  readonly to: string
  readonly percent: number
}

/** This gateway leads from now on, another one does, or nobody is known to. */
export interface LeaderChanged {
  readonly at: Instant
  readonly kind: 'leader-changed'
  /** What is led. */
  readonly name: string
  readonly role: 'leads' | 'follows' | 'nobody'
  readonly fence?: number | undefined
  readonly because: string
}

/** An administrator has paused a tenant, or lets it go on. */
export interface TenantPaused {
  readonly at: Instant
  readonly kind: 'tenant-paused'
  readonly tenantId: string
  readonly isPaused: boolean
  readonly by: string
  readonly because: string
}

/** Admission enforces its verdicts from now on, or only says what they would have been. */
export interface ModeChanged {
  readonly at: Instant
  readonly kind: 'mode-changed'
  readonly mode: 'enforce' | 'observe'
  readonly by: string
  readonly because: string
}
