/**
 * What was added while the platform ran, and is there again after a restart: models, releases and pools in the words of
 * the configuration file, and how far rollouts have got. Every write is a revision with who and why, kept for ever.
 */
export const REGISTRY_KINDS = ['model', 'release', 'pool', 'rollout'] as const

export type RegistryKind = (typeof REGISTRY_KINDS)[number]

export interface RegistryEntry {
  readonly kind: RegistryKind
  /** A model's name, `MODEL@VERSION`, a pool's id. */
  readonly name: string
  readonly body: RegistryBody
}

export type RegistryBody = Readonly<Record<string, unknown>>

/** Put, or removed when there is no body. */
export interface RegistryEdit {
  readonly kind: RegistryKind
  readonly name: string
  readonly body: RegistryBody | undefined
}

export interface RegistryWrite {
  /** The revision that the edits were made against: whoever was faster wins, and the other one looks again. */
  readonly expectedRevision: number
  readonly atMs: number
  readonly by: string
  readonly because: string
  readonly edits: readonly RegistryEdit[]
}

export interface RegistryState {
  /** 0 before the first write. */
  readonly revision: number
  readonly entries: readonly RegistryEntry[]
}

/** One edit of one write, as it is remembered. */
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
  /** Of this model, release or pool, and of a model's releases. */
  readonly name?: string | undefined
  readonly limit: number
}

/** Where it is kept. A write is whole or not there at all. */
export interface RegistryStore {
  load(): Promise<RegistryState>
  revision(): Promise<number>
  /** The new revision; `stale` when somebody else has written since. */
  write(write: RegistryWrite): Promise<number | 'stale'>
  /** Newest first. */
  history(ask: HistoryAsk): Promise<readonly RegistryChange[]>
}
