import type { AutoscaleTerms } from './autoscale.ts'
import type { TransitRoute } from './transit.ts'

/**
 * The fleet. A model is a public name; a release is one version of it; a pool is the replicas of a release in a region;
 * a replica is one running engine, reached through a backend.
 */
/**
 * The kind of a model. `chat` models generate token by token. The others answer without streaming: vectors for texts,
 * scores for pairs, labels for images. `audio` and `image` models are served by transit alone.
 */
export type ModelKind = 'chat' | 'embedding' | 'ranking' | 'vision' | 'audio' | 'image'

export const MODEL_KINDS: readonly ModelKind[] = ['chat', 'embedding', 'ranking', 'vision', 'audio', 'image']

export interface Model {
  readonly name: string
  /** `chat` if absent. */
  readonly kind?: ModelKind
  /** Endpoints that the model's engines serve by transit; none if absent. */
  readonly transit?: readonly TransitRoute[]
  readonly aliases: readonly string[]
  /** Most tokens of prompt and answer together. */
  readonly contextTokensMax: number
  /** The operator's bound on answers whose client sets none; absent, the engine is told none. */
  readonly outputTokensDefault?: number
  /** The smaller model that answers instead when the ladder says so. */
  readonly fallback: string | undefined
  readonly createdAtS: number
  /** Ids of the model's releases, the oldest first. */
  readonly releases: readonly string[]
}

/** One version of a model. Limits, fallback and price belong to the release, because versions differ in them. */
export interface Release {
  /** `MODEL@VERSION`: two models may have versions of the same name. */
  readonly id: string
  readonly model: string
  readonly version: string
  /** Where the weights come from, in the registry's own notation; informational. */
  readonly artifact?: string
  /** Other names in the registry: aliases, stages. */
  readonly labels?: readonly string[]
  readonly contextTokensMax: number
  readonly fallback: string | undefined
  /** Price of a million tokens, in the operator's currency. */
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
  /**
   * The engine that the replica is, by a name of its own. Replicas of several pools with the same name are one engine:
   * what runs there is counted once. Absent: an engine of the replica's own.
   */
  readonly engineId?: string
}

export interface Pool {
  readonly id: string
  readonly model: string
  readonly releaseId: string
  readonly region: string
  readonly replicas: readonly Replica[]
  /** The pool stands for the gateway of another region, which has replicas and a queue of its own. */
  readonly isPeer?: boolean
  /** Its engines are trusted with prompts that no screen has judged yet: on these pools judging may overlap prefill. */
  readonly isInside?: boolean
  /** Tenants that the pool is reserved for; undefined when it serves all tenants. */
  readonly dedicatedTo?: readonly string[] | undefined
  /** How its number of replicas is found, and who writes it; absent: nobody does. */
  readonly autoscale?: AutoscaleTerms | undefined
  /** Its replicas may be taken away at any time: they get offline work only. */
  readonly isSpot?: boolean
}

/** One turn's hold on a replica: granted once, returned once (law L2). */
export interface Lease {
  readonly id: number
  readonly ticketId: string
  readonly replica: Replica
}
