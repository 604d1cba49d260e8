/** What a model's engines can do beyond plain text. */
export interface ModelFeatures {
  readonly logprobs: boolean
  /** `best_of` above `n` costs nothing more: the engines make only as many answers as are returned. No if absent. */
  readonly bestOf?: boolean
  readonly tools: boolean
  readonly jsonSchema: boolean
  /** The engines take texts and return vectors (`/v1/embeddings`); no if absent. */
  readonly vectors?: boolean
  /** The engines take and return tensors (`/v2/…/infer`); no if absent. */
  readonly tensors?: boolean
  /** The engines have endpoints that requests are passed through to; no if absent. */
  readonly transit?: boolean
}
