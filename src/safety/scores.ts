import type { EmbeddedScreen, ScreenScores, ScreenText } from '../domain/screening.ts'
import type { ScreenAsk } from '../lifecycle/screening-ports.ts'
import type { ScoreDefaults } from '../policy/screening/decide-verdict.ts'

/**
 * How much does a request look like what the embedded screens look for? Each screen reads the texts that it was made
 * for: a user's texts may be injections or toxic; passages and tool results may hide instructions, which are ordinary
 * sentences anywhere else. The tenant's own instructions and earlier answers of a model are read by none.
 *
 * Long texts are read in turns, with a pause after each, so that nobody else waits for them.
 */
export interface ScreenScorer {
  readonly defaults: ScoreDefaults
  /** At once, or later where it takes long. A screen that could not say is absent. */
  scoresOf(ask: Pick<ScreenAsk, 'requestId' | 'screening'>, wanted: readonly EmbeddedScreen[]): Scored
}

export type Scored = ScreenScores | Promise<ScreenScores>

/** The embedded models, as far as a request needs them. */
export interface ScoringModels {
  get(name: EmbeddedScreen): { readonly scoreMin: number }
  score(text: string, names: readonly EmbeddedScreen[]): ScreenScores
  /** The same in turns of a fraction of a millisecond. */
  scoreInTurns(text: string, names: readonly EmbeddedScreen[]): Generator<undefined, ScreenScores>
}

export interface ModelScorerOptions {
  readonly models: ScoringModels
  /** Undoes tricks of writing (look-alike letters, letters of no width) before a text is read. */
  readonly normalise?: (text: string) => string
  /** Lets everything run that waits for the event loop. */
  readonly pause: () => Promise<void>
}

const READS: Readonly<Partial<Record<ScreenText['role'], readonly EmbeddedScreen[]>>> = {
  user: ['injection', 'toxicity'],
  passage: ['passage-injection'],
  tool: ['passage-injection'],
}

/** Characters of all texts that are read without a pause: under a millisecond. */
const AT_ONCE_CHARACTERS = 16_384

export class ModelScorer implements ScreenScorer {
  readonly defaults: ScoreDefaults
  readonly #options: ModelScorerOptions

  constructor(options: ModelScorerOptions) {
    this.#options = options
    const minOf = (name: EmbeddedScreen): number => options.models.get(name).scoreMin
    this.defaults = {
      injection: minOf('injection'),
      'passage-injection': minOf('passage-injection'),
      toxicity: minOf('toxicity'),
    }
  }

  scoresOf({ screening }: Pick<ScreenAsk, 'screening'>, wanted: readonly EmbeddedScreen[]): Scored {
    const { models, normalise = (text) => text } = this.#options
    const worst = new Worst(wanted)
    let length = 0
    for (const { text } of screening.texts) length += text.length
    if (length > AT_ONCE_CHARACTERS) return this.#inTurns(screening.texts, worst)
    for (const { role, text } of screening.texts) {
      const names = worst.namesFor(role)
      if (names.length > 0) worst.take(models.score(normalise(text), names))
    }
    return worst.scores
  }

  async #inTurns(texts: readonly ScreenText[], worst: Worst): Promise<ScreenScores> {
    const { models, normalise = (text) => text, pause } = this.#options
    for (const { role, text } of texts) {
      const names = worst.namesFor(role)
      if (names.length === 0) continue
      const turns = models.scoreInTurns(normalise(text), names)
      for (;;) {
        const turn = turns.next()
        await pause()
        if (turn.done !== true) continue
        worst.take(turn.value)
        break
      }
    }
    return worst.scores
  }
}

/** The highest score of each wanted screen over the texts so far; 0 for a screen that has nothing to read. */
class Worst {
  readonly scores: Partial<Record<EmbeddedScreen, number>>
  readonly #wanted: readonly EmbeddedScreen[]

  constructor(wanted: readonly EmbeddedScreen[]) {
    this.#wanted = wanted
    this.scores = Object.fromEntries(wanted.map((screen) => [screen, 0]))
  }

  namesFor(role: ScreenText['role']): readonly EmbeddedScreen[] {
    return READS[role]?.filter((screen) => this.#wanted.includes(screen)) ?? []
  }

  take(scores: ScreenScores): void {
    for (const screen of this.#wanted) this.scores[screen] = Math.max(this.scores[screen] ?? 0, scores[screen] ?? 0)
  }
}
