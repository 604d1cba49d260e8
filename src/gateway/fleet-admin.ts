import type { HistoryAsk, RegistryChange, RegistryEdit, RegistryKind } from '../domain/registry.ts'

/** Who changes the platform, and why. */
export interface AdminReason {
  readonly by: string
  readonly because: string
}

export interface AdminModel {
  readonly name: string
  /** `file`: read-only in the admin API. */
  readonly source: 'file' | 'registry'
  readonly aliases: readonly string[]
  readonly contextTokensMax: number
  readonly fallback: string | undefined
  readonly releases: readonly AdminRelease[]
  readonly pools: readonly AdminPool[]
}

export interface AdminRelease {
  readonly id: string
  readonly version: string
  readonly source: 'file' | 'registry'
  readonly artifact: string | undefined
  readonly labels: readonly string[] | undefined
  readonly contextTokensMax: number
  readonly fallback: string | undefined
  readonly price: { readonly inputPerMillion: number; readonly outputPerMillion: number } | undefined
}

export interface AdminPool {
  readonly id: string
  readonly source: 'file' | 'registry'
  readonly model: string
  readonly release: string
  readonly region: string
  readonly backend: string
  /** The pool gets no new requests and is removed when its last answer has ended. */
  readonly isClosing: boolean
  readonly waiting: number
  readonly running: number
  readonly replicas: readonly AdminReplica[]
}

export interface AdminReplica {
  readonly id: string
  readonly url: string | undefined
  readonly health: string
  /** Why its engine denies us (a wrong key or address, a used-up quota), until it answers again. */
  readonly deniedBecause?: string
  readonly running: number
  /** Share of its KV memory that is booked; absent where its size is not known. */
  readonly kvRatio?: number
  readonly isLeaving: boolean
}

/** What was learned of the engines of one pool. */
export interface AdminLearned {
  readonly pool: string
  /** False: the engines' step times are declared, and nothing is learned. */
  readonly isLearned: boolean
  readonly replicas: readonly AdminLearnedReplica[]
}

export interface AdminLearnedReplica {
  readonly id: string
  /** Enough was seen, and the predictions are near it. */
  readonly isTrusted: boolean
  /** Stretches of answers that it was learned from. */
  readonly rows: number
  /** Times that the engine was found changed. */
  readonly changes: number
  /** What it is thought to be like where nothing was seen. */
  readonly prior: string
  readonly step: {
    readonly baseUs: number
    readonly perSequenceUs: number
    readonly perContextTokenUs: number
    readonly perPromptTokenUs: number
  }
  /** A first token alone; tokens beyond `knotTokens` have a price of their own. */
  readonly firstToken: {
    readonly baseUs: number
    readonly knotTokens: number
    readonly perTokenUs: number
    readonly perTokenBeyondUs: number
    readonly perPairUs: number
  }
  /** Prompt tokens of one step, as the prior has them. */
  readonly tokenBudget: number
  /** Mean relative errors; null before anything was seen. */
  readonly tokenError: number | null
  readonly firstTokenError: number | null
  readonly sequencesSeen: number
  /** Sequences beyond which the predictions are extrapolations. */
  readonly extrapolatedBeyond: number
  readonly ceiling: { readonly sequencesMax: number; readonly because: string }
  /** Null while unknown. */
  readonly kv: { readonly tokensMax: number; readonly isTold: boolean } | null
}

export interface AdminCommand {
  readonly kind: 'start' | 'pause' | 'resume' | 'promote' | 'roll-back' | 'undo'
  /** With `start`: a version, or `MODEL@VERSION`. */
  readonly release?: string | undefined
}

export type AdminAnswer =
  | { readonly kind: 'changed'; readonly revision: number | undefined }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

/** Why a change to the platform is refused. The error table has each code's HTTP status and advice. */
export type AdminCode =
  | 'missing-required-parameter'
  | 'invalid-value'
  | `no-such-${RegistryKind}`
  | 'nothing-to-change'
  | 'in-configuration-file'
  | 'still-used'
  | 'discovered'
  | 'pool-is-running'
  | 'pool-is-closing'
  | 'simulated-engines'
  | 'invalid-configuration'
  | 'contradicts-registry'
  | 'nothing-to-reload'
  | 'nothing-to-restart'
  | 'registry-full'
  | 'changed-meanwhile'
  | 'too-many-changes'
  | 'registry-unavailable'
  | 'too-many-recordings'
  | 'no-such-record'
  | 'id-taken'
  | 'two-live-secrets'
  | 'beyond-authority'

export interface AdminRefusal {
  readonly code: AdminCode
  readonly because: string
  readonly param: string | null
}

/** The configuration was read again: what changed, in numbers, and which changed settings wait for a restart. */
export interface AdminReload {
  readonly changed: {
    readonly tenants: number
    readonly keys: number
    readonly models: number
    readonly rollouts: number
    readonly poolsAdded: number
    readonly poolsRemoved: number
    readonly poolsDedicated: number
    readonly poolsScaled: number
    readonly poolsRekeyed: number
    readonly replicasAdded: number
    readonly replicasRemoved: number
  }
  /** As `server.port`. */
  readonly needsRestart: readonly string[]
}

export type AdminReloadAnswer =
  | { readonly kind: 'reloaded'; readonly reload: AdminReload }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

export interface AdminRollout {
  readonly model: string
  /** Release ids. */
  readonly stable: string
  readonly canary: string | undefined
  readonly phase: string
  readonly percent: number
  readonly isPaused: boolean
  /** The judge's verdict, with its numbers. */
  readonly verdict: unknown
}

/** How admission is ordered to behave. */
export interface AdminAdmission {
  readonly mode: 'enforce' | 'observe'
  /** What the configuration file says, which holds when no administrator has chosen a mode. */
  readonly modeInFile: 'enforce' | 'observe'
  readonly paused: readonly { readonly tenant: string; readonly because: string }[]
}

/** What the admin API needs of the platform: what is there, and changes to it, each with who and why. */
export type AdminRestartAnswer =
  | { readonly kind: 'begun'; readonly processes: number }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

export interface FleetAdmin {
  rollouts(): readonly AdminRollout[]
  rollout(model: string, command: AdminCommand, reason: AdminReason): Promise<AdminAnswer>
  models(): readonly AdminModel[] | Promise<readonly AdminModel[]>
  pools(): readonly AdminPool[] | Promise<readonly AdminPool[]>
  /** Undefined when there is no such pool. */
  learned(poolId: string): AdminLearned | undefined
  /** Puts and removes entries, all of them or none. */
  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer>
  /** Removes an entry with everything that belongs to it: a model's releases and pools. */
  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer>
  /** Adds one address to a pool of engines, of the configuration file or of the registry. */
  addReplica(poolId: string, url: string, reason: AdminReason): Promise<AdminAnswer>
  removeReplica(replicaId: string, reason: AdminReason): Promise<AdminAnswer>
  /** Drains a replica, or takes it back. */
  drain(replicaId: string, isDrained: boolean, reason: AdminReason): Promise<AdminAnswer>
  admission(): AdminAdmission
  /** Refuses a tenant's new requests, or takes them again. */
  pause(tenantId: string, isPaused: boolean, reason: AdminReason): Promise<AdminAnswer>
  changeMode(mode: AdminAdmission['mode'], reason: AdminReason): Promise<AdminAnswer>
  /** The configuration file is read again: all of it takes effect, or nothing does. */
  reload(reason: AdminReason): Promise<AdminReloadAnswer>
  /** New processes take the place of the old ones, one after the other; the answer comes when that has begun. */
  restart(reason: AdminReason): Promise<AdminRestartAnswer>
  history(ask: HistoryAsk): Promise<readonly RegistryChange[] | AdminRefusal>
}
