/** The interface between a step-time model and the policies: questions about an engine's speed. */

/** What planning and admission need to know of an engine: a narrow view of its step-time model. */
export interface EngineSpeed {
  /** Time from the turn to the first token, with this many tokens to compute after this many cached ones. */
  prefillUs(uncachedTokens: number, cachedTokens: number): number
  /** Time from one token to the next at this context length. */
  tokenUs(contextTokens: number): number
  /** Time that an answer takes of a full engine; absent if the engine's step times are unknown. */
  readonly shareUs?: (uncachedTokens: number, outputTokens: number) => number
}

/** The step times of a replica's profile. Non-decreasing in every argument. */
export interface StepModel {
  /**
   * Mean microseconds of a step that decodes `sequences` over `contextTokens` in sum and takes `prefillTokens` of
   * prompts along (bounded by the engine's own token budget a step).
   */
  meanTokenUs(sequences: number, contextTokens: number, prefillTokens: number): number
  /** Most tokens of one step, decodes and prompts together; absent means unlimited. */
  readonly tokensPerStepMax?: number
  /** As it is known now, for a model that learns: what comes later does not change the answer. Absent: it never changes. */
  frozen?(): StepModel
}

/** The speed of a pool's engines before any measurement. */
export interface PoolSpeed {
  readonly alone: EngineSpeed
  /** Prior of the drain rate: weighted tokens per microsecond that one busy replica completes. */
  readonly drainPerReplicaUs: number
  readonly kvTokensMax: number
  /** Step times, for the limit; undefined if the engine's step times are unknown. */
  readonly steps: (StepModel & { readonly tokenBudget: number }) | undefined
  /** Answers that the engine takes in at once; absent where that is unknown. What it gets beyond would wait inside it. */
  readonly sequencesMax?: number
  /** Items of one batch, for an engine that answers without streaming. */
  readonly itemsMax?: number
}
