import { HARM_KINDS, type HarmFindings } from '../domain/harm.ts'
import type { Moderator } from '../lifecycle/screening-ports.ts'
import type { SafetyModels } from './models/safety-models.ts'

/** What harm is in a text, by the embedded models: in turns, with a pause after each, so that nobody waits for a long text. */
export class EmbeddedModerator implements Moderator {
  readonly #models: SafetyModels
  readonly #normalise: (text: string) => string
  readonly #pause: () => Promise<void>

  constructor(models: SafetyModels, normalise: (text: string) => string, pause: () => Promise<void>) {
    this.#models = models
    this.#normalise = normalise
    this.#pause = pause
  }

  async harmsOf(text: string): Promise<HarmFindings> {
    const turns = this.#models.scoreInTurns(this.#normalise(text), HARM_KINDS)
    for (;;) {
      const turn = turns.next()
      if (turn.done !== true) {
        await this.#pause()
        continue
      }
      const scores = turn.value
      return Object.fromEntries(
        HARM_KINDS.map((kind) => {
          const score = scores[kind] ?? 0
          return [kind, { score, isFound: score >= this.#models.get(kind).scoreMin }]
        }),
      ) as unknown as HarmFindings
    }
  }
}
