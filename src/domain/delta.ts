/**
 * One piece of an answer on its way to the client. Live engines send one per token; the simulated backend sends a few
 * per answer, each with a count and the statistics of the gaps inside it, so that metrics, ledger and partial counts
 * come out the same.
 */
export interface Delta {
  /** Output tokens that this delta brings, over all choices. */
  readonly tokens: number
  /** Gaps between the tokens inside this delta, when it brings more than one. */
  readonly innerGapUs?: number
  /** What the client sees; absent in simulation. */
  readonly choices?: readonly ChoiceDelta[]
  /** The whole answer of a model that answers in one go; it brings no tokens. */
  readonly result?: Result
}

/** Vectors, one per text that was asked about; or named tensors, as the protocol writes them. */
export type Result =
  | { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[] }
  | { readonly kind: 'tensors'; readonly document: Readonly<Record<string, unknown>> }

/**
 * One choice's share of a delta. `content` is plain text, null when there is none; whatever else an engine says about the choice (tool calls,
 * log probabilities, reasoning) travels untouched in `extra`.
 */
export interface ChoiceDelta {
  readonly index: number
  readonly content: string | null
  readonly finishReason: string | null
  readonly extra?: Readonly<Record<string, unknown>>
  readonly logprobs?: unknown
}

/** Measured work: what the engine says it did. */
export interface Usage {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
}

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 }
