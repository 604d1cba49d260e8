/** What a model's engines can do beyond plain text. */
export interface ModelFeatures {
  readonly logprobs: boolean
  readonly tools: boolean
  readonly jsonSchema: boolean
  /** Takes texts and gives vectors (`/v1/embeddings`); no if absent. */
  readonly vectors?: boolean
  /** Takes tensors and gives tensors (`/v2/…/infer`); no if absent. */
  readonly tensors?: boolean
}
