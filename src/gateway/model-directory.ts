import type { Model, ModelKind } from '../domain/fleet.ts'
import type { ModelFeatures } from '../domain/model-features.ts'

/** The models by name. Aliases resolve to their model; what the backends of a model cannot do is known beforehand. */
export interface KnownModel {
  readonly model: Model
  readonly features: ModelFeatures
}

export class ModelDirectory {
  #byName: ReadonlyMap<string, KnownModel> = new Map()
  #all: readonly KnownModel[] = []

  constructor(models: readonly KnownModel[]) {
    this.replace(models)
  }

  /** Replaces all models at once, from the next request on. */
  replace(models: readonly KnownModel[]): void {
    const byName = new Map<string, KnownModel>()
    for (const known of models) {
      byName.set(known.model.name, known)
      for (const alias of known.model.aliases) byName.set(alias, known)
    }
    this.#all = models
    this.#byName = byName
  }

  resolve(name: string): KnownModel | undefined {
    return this.#byName.get(name)
  }

  /** The name of the only model of this kind; undefined when there are several, or none. */
  only(kind: ModelKind): string | undefined {
    const [first, second] = this.#all.filter(({ model }) => (model.kind ?? 'chat') === kind)
    return second === undefined ? first?.model.name : undefined
  }

  list(): readonly KnownModel[] {
    return this.#all
  }
}
