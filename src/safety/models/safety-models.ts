import { HARM_KINDS } from '../../domain/harm.ts'
import { type LinearWeights, WindowSums } from './linear-model.ts'
import type { TrainedModel } from './model-file.ts'
import { FeatureReader } from './read-features.ts'

/**
 * How much does a text look like an attack, abuse or harm? The embedded models, which triage: they know words and
 * phrases, not intent. A paraphrase that nobody wrote before and a polite harmful wish pass them; a guard model behind
 * them decides in the grey zone.
 *
 * A text is read once for all models that are asked about it. Texts should be normalised first (homoglyphs, zero-width
 * characters). `score` takes all of a text in one go; long ones are scored in turns (`scoreInTurns`), so that nobody
 * else waits for them.
 */
export const MODEL_NAMES = ['injection', 'passage-injection', 'toxicity', ...HARM_KINDS] as const
export type ModelName = (typeof MODEL_NAMES)[number]
export interface TextModel {
  readonly name: ModelName
  /** Score from which on a text is a finding, unless a policy says otherwise. */
  readonly scoreMin: number
  /** Score from which on a guard model should be asked. */
  readonly greyFrom: number
  /** 0 … 1. */
  readonly score: (text: string) => number
}

/** Score by model; only of the models that were asked. */
export type ModelScores = Readonly<Partial<Record<ModelName, number>>>

/** Bytes per turn: 16 kB take a fifth of a millisecond, a tenth of what a turn may take. */
export const TURN_BYTES = 16_384
/** Scores in the model file have this many digits. */
const SELF_TEST_TOLERANCE = 1e-6

export class SafetyModels {
  readonly #models: ReadonlyMap<ModelName, TrainedModel>
  readonly #texts: ReadonlyMap<ModelName, TextModel>
  readonly #sums: ReadonlyMap<ModelName, WindowSums>
  readonly #reader = new FeatureReader()

  constructor(models: readonly TrainedModel[]) {
    this.#models = new Map(models.map((model) => [model.name as ModelName, model]))
    for (const name of MODEL_NAMES) {
      if (!this.#models.has(name)) throw new Error(`the safety model ${name} is missing: train it, or fetch its file`)
    }
    this.#sums = new Map([...this.#models].map(([name, model]) => [name, new WindowSums(model)]))
    this.#texts = new Map([...this.#models].map(([name, model]) => [name, this.#textModel(name, model)]))
  }

  get(name: ModelName): TextModel {
    return this.#texts.get(name) as TextModel
  }

  /** Scores of a text under several models, in one reading. */
  score(text: string, names: readonly ModelName[]): ModelScores {
    const reader = this.#reader
    const sums = names.map((name) => this.#sums.get(name) as WindowSums)
    for (let at = 0; at < sums.length; at++) (sums[at] as WindowSums).clear()
    reader.open(text)
    while (reader.next()) for (let at = 0; at < sums.length; at++) (sums[at] as WindowSums).add(reader)
    reader.close()
    return scoresOf(names, sums)
  }

  /** The same in turns: after each one others may go first. */
  *scoreInTurns(text: string, names: readonly ModelName[]): Generator<undefined, ModelScores> {
    // A reader and sums of its own: other texts are scored between its turns.
    const sums = names.map((name) => new WindowSums(this.#models.get(name) as LinearWeights))
    const reader = new FeatureReader()
    let turnBytes = 0
    reader.open(text)
    while (reader.next()) {
      for (let at = 0; at < sums.length; at++) (sums[at] as WindowSums).add(reader)
      turnBytes += reader.length
      if (turnBytes < TURN_BYTES) continue
      turnBytes = 0
      yield undefined
    }
    return scoresOf(names, sums)
  }

  /** Models that do not score their own two texts as when they were trained; none: ready. */
  failedSelfTests(): readonly ModelName[] {
    return [...this.#models]
      .filter(([name, { selfTest }]) =>
        selfTest.some(({ text, score }) => Math.abs(this.get(name).score(text) - score) > SELF_TEST_TOLERANCE),
      )
      .map(([name]) => name)
  }

  #textModel(name: ModelName, { scoreMin, greyFrom }: TrainedModel): TextModel {
    return { name, scoreMin, greyFrom, score: (text) => this.score(text, [name])[name] as number }
  }
}

function scoresOf(names: readonly ModelName[], sums: readonly WindowSums[]): ModelScores {
  const scores: Partial<Record<ModelName, number>> = {}
  for (let at = 0; at < names.length; at++) scores[names[at] as ModelName] = (sums[at] as WindowSums).score
  return scores
}
