/**
 * What there is to run on. A model is a public name; a release is one version of it; a pool is the replicas of a
 * release in a region; a replica is one running engine, reached through a backend.
 */
/**
 * What a model does with a request. `chat` models generate token by token; the others answer in one go: vectors for
 * texts, scores for pairs, labels for images.
 */
export type ModelKind = 'chat' | 'embedding' | 'ranking' | 'vision'

export const MODEL_KINDS: readonly ModelKind[] = ['chat', 'embedding', 'ranking', 'vision']

export interface Model {
  readonly name: string
  /** `chat` if absent. */
  readonly kind?: ModelKind
  readonly aliases: readonly string[]
  /** Prompt and answer together may not be longer than this. */
  readonly contextTokensMax: number
  /** What a client that says nothing gets at most. */
  readonly outputTokensDefault: number
  /** The smaller model that answers in its place when the ladder says so. */
  readonly fallback: string | undefined
  readonly createdAtS: number
  /** Ids of its releases, the first one first. */
  readonly releases: readonly string[]
}

/** One version of a model. What it says of limits, fallback and price is its own: versions differ in them. */
export interface Release {
  /** `MODEL@VERSION`: versions of two models may have one name. */
  readonly id: string
  readonly model: string
  readonly version: string
  /** Where its weights come from, as its registry names them; nothing here reads it. */
  readonly artifact?: string
  /** What else it is called there: aliases, stages. */
  readonly labels?: readonly string[]
  readonly contextTokensMax: number
  readonly fallback: string | undefined
  /** Of a million tokens, in the operator's currency. */
  readonly price?: { readonly inputPerMillion: number; readonly outputPerMillion: number }
  readonly createdAtS: number
}

export const releaseIdOf = (model: string, version: string): string => `${model}@${version}`

export interface Replica {
  readonly id: string
  readonly poolId: string
  readonly model: string
  readonly releaseId: string
  readonly region: string
}

export interface Pool {
  readonly id: string
  readonly model: string
  readonly releaseId: string
  readonly region: string
  readonly replicas: readonly Replica[]
  /** It is the gateway of another region, which has replicas and a queue of its own. */
  readonly isPeer?: boolean
  /** Tenants that it is kept for; undefined when it is for everybody. */
  readonly dedicatedTo?: readonly string[] | undefined
}

/** One turn's hold on a replica: granted once, returned once (law L2). */
export interface Lease {
  readonly id: number
  readonly ticketId: string
  readonly replica: Replica
}
