import type { Model } from '../domain/fleet.ts'

/** Which model does this name mean? Aliases resolve to their model; what backends cannot do is known beforehand. */
export interface ModelFeatures {
  readonly logprobs: boolean
  readonly tools: boolean
  readonly jsonSchema: boolean
  /** Takes texts and gives vectors (`/v1/embeddings`); no if absent. */
  readonly vectors?: boolean
  /** Takes tensors and gives tensors (`/v2/…/infer`); no if absent. */
  readonly tensors?: boolean
}

export interface KnownModel {
  readonly model: Model
  readonly features: ModelFeatures
}

export class ModelDirectory {
  readonly #byName = new Map<string, KnownModel>()
  readonly #all: readonly KnownModel[]

  constructor(models: readonly KnownModel[]) {
    this.#all = models
    for (const known of models) {
      this.#byName.set(known.model.name, known)
      for (const alias of known.model.aliases) this.#byName.set(alias, known)
    }
  }

  resolve(name: string): KnownModel | undefined {
    return this.#byName.get(name)
  }

  list(): readonly KnownModel[] {
    return this.#all
  }
}
