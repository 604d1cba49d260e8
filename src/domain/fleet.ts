/**
 * What there is to run on. A model is a public name; a release is one version of it; a pool is the replicas of a
 * release in a region; a replica is one running engine, reached through a backend.
 */
export interface Model {
  readonly name: string
  readonly aliases: readonly string[]
  /** Prompt and answer together may not be longer than this. */
  readonly contextTokensMax: number
  /** What a client that says nothing gets at most. */
  readonly outputTokensDefault: number
  /** The smaller model that answers in its place when the ladder says so. */
  readonly fallback: string | undefined
  readonly createdAtS: number
}

export interface Replica {
  readonly id: string
  readonly poolId: string
  readonly model: string
  readonly region: string
}

export interface Pool {
  readonly id: string
  readonly model: string
  readonly region: string
  readonly replicas: readonly Replica[]
}

/** One turn's hold on a replica: granted once, returned once (law L2). */
export interface Lease {
  readonly id: number
  readonly ticketId: string
  readonly replica: Replica
}
