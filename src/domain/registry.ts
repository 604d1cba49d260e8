import type { Fence } from './leader.ts'

/**
 * The registry is what was added at run time and survives a restart: models, releases and pools, written as in the
 * configuration file, replicas of the file's pools, replicas that are drained, tenants that are paused, the mode of
 * admission, and the steps of rollouts. Every write is a revision with author and reason, kept for ever.
 */
export const REGISTRY_KINDS = ['model', 'release', 'pool', 'replica', 'drain', 'pause', 'mode', 'rollout'] as const

export type RegistryKind = (typeof REGISTRY_KINDS)[number]

export interface RegistryEntry {
  readonly kind: RegistryKind
  /** A model's name, `MODEL@VERSION`, a pool's id, a replica's id, a tenant's id; `admission` for the mode. */
  readonly name: string
  readonly body: RegistryBody
}

export type RegistryBody = Readonly<Record<string, unknown>>

/** An edit puts an entry, or removes it when there is no body. */
export interface RegistryEdit {
  readonly kind: RegistryKind
  readonly name: string
  readonly body: RegistryBody | undefined
}

export interface RegistryWrite {
  /** The revision that the edits were made against: the first writer wins, the other one reads again. */
  readonly expectedRevision: number
  readonly atMs: number
  readonly by: string
  readonly because: string
  readonly edits: readonly RegistryEdit[]
  /** What a leader decided: written only while its term runs. */
  readonly fence?: Fence | undefined
}

export interface RegistryState {
  /** 0 before the first write. */
  readonly revision: number
  readonly entries: readonly RegistryEntry[]
}

/** One edit of one write, as the history keeps it. */
export interface RegistryChange {
  readonly revision: number
  readonly atMs: number
  readonly by: string
  readonly because: string
  readonly kind: RegistryKind
  readonly name: string
  readonly before: RegistryBody | undefined
  readonly after: RegistryBody | undefined
}

export interface HistoryAsk {
  /** Limits the history to this model (with its releases, pools and their replicas), release, pool (with its replicas) or replica. */
  readonly name?: string | undefined
  /** Pools of that model which the registry does not have: replicas of the file's pools name their pool only. */
  readonly poolIds?: readonly string[]
  readonly limit: number
}

/** Where the registry is stored. A write is stored completely or not at all. */
export interface RegistryStore {
  load(): Promise<RegistryState>
  revision(): Promise<number>
  /** The new revision; `stale` when another writer was faster, `deposed` when the fence does not hold. */
  write(write: RegistryWrite): Promise<number | 'stale' | 'deposed'>
  /** Newest first. */
  history(ask: HistoryAsk): Promise<readonly RegistryChange[]>
}
