/**
 * A delta is one piece of an answer on its way to the client. Live engines send one for each token, or one for several;
 * how many is counted where the frame is read (`wire/frame-tokens.ts`). The simulated backend sends a few per answer, each
 * with a count and the statistics of the gaps inside it, so that metrics, ledger and partial counts come out the same.
 */
export interface Delta {
  /** Output tokens in this delta, over all choices; 0 for text that ends no token. */
  readonly tokens: number
  /** Gap between the tokens inside this delta, if it has more than one. */
  readonly innerGapUs?: number
  /** What the client sees; absent in simulation. */
  readonly choices?: readonly ChoiceDelta[]
  /** The whole answer of a model that does not stream; such a delta has no tokens. */
  readonly result?: Result
}

/** Vectors, one per text; or named tensors, as the protocol writes them. */
export type Result =
  | { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[] }
  | { readonly kind: 'tensors'; readonly document: Readonly<Record<string, unknown>> }

/**
 * One choice's share of a delta. `content` is plain text, or null. Everything else that an engine says about the choice
 * (tool calls, log probabilities, reasoning) is passed on unchanged in `extra`.
 */
export interface ChoiceDelta {
  readonly index: number
  readonly content: string | null
  readonly finishReason: string | null
  readonly extra?: Readonly<Record<string, unknown>>
  readonly logprobs?: unknown
}

/** Measured work, as reported by the engine. */
export interface Usage {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
}

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 }
