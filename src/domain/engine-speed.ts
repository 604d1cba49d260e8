/** What may be asked of an engine's speed: the words in which a step-time model speaks to the policies. */

/** What planning and admission need to know of an engine: a narrow view of its step-time model. */
export interface EngineSpeed {
  /** From its turn to the first token, with so many tokens to compute and so many already cached before them. */
  prefillUs(uncachedTokens: number, cachedTokens: number): number
  /** From one token to the next at this context length. */
  tokenUs(contextTokens: number): number
  /** What an answer takes of the time of an engine that is full; absent where the engine tells nothing of its steps. */
  readonly shareUs?: (uncachedTokens: number, outputTokens: number) => number
}

/** What a replica's profile must be able to say. Non-decreasing in every argument. */
export interface StepModel {
  /**
   * Mean microseconds of a step that decodes `sequences` over `contextTokens` in sum and takes `prefillTokens` of
   * prompts along (bounded by the engine's own token budget a step).
   */
  meanTokenUs(sequences: number, contextTokens: number, prefillTokens: number): number
  /** Tokens that one step takes at most, decodes and prompts together; unlimited when not said. */
  readonly tokensPerStepMax?: number
}

/** How fast a pool's engines are, before anything was seen of them. */
export interface PoolSpeed {
  readonly alone: EngineSpeed
  /** Weighted tokens per microsecond that one busy replica should complete: the prior of the drain rate. */
  readonly drainPerReplicaUs: number
  readonly kvTokensMax: number
  /** For the limit; undefined where the engine tells nothing of its steps. */
  readonly steps: (StepModel & { readonly tokenBudget: number }) | undefined
  /** What one batch holds, for an engine that answers in one go. */
  readonly itemsMax?: number
}
