import { expect, it } from 'vitest'
import { screeningOf } from '../../test/support/scripted-screener.ts'
import { EMBEDDED_SCREENS, type EmbeddedScreen, type ScreenScores, type ScreenText } from '../domain/screening.ts'
import { ModelScorer, type ScoringModels } from './scores.ts'

/** Models that score a text by how much of it is the word they know. */
class WordModels implements ScoringModels {
  readonly read: string[] = []
  get(_name: EmbeddedScreen): { scoreMin: number } {
    return { scoreMin: 0.5 }
  }
  score(text: string, names: readonly EmbeddedScreen[]): ScreenScores {
    this.read.push(`${names.join('+')}: ${text.slice(0, 20)}`)
    return Object.fromEntries(names.map((name) => [name, text.includes(name.slice(0, 5)) ? 0.9 : 0.1]))
  }
  *scoreInTurns(text: string, names: readonly EmbeddedScreen[]): Generator<undefined, ScreenScores> {
    for (let i = 16_384; i < text.length; i += 16_384) yield undefined
    return this.score(text, names)
  }
}

function scorerOf() {
  const models = new WordModels()
  const counts = { pauses: 0 }
  const pause = (): Promise<void> => {
    counts.pauses++
    return Promise.resolve()
  }
  const scorer = new ModelScorer({ models, pause, normalise: (text) => text.replaceAll('ѕ', 's') })
  const scoresOf = (texts: readonly ScreenText[], wanted = EMBEDDED_SCREENS as readonly EmbeddedScreen[]) =>
    scorer.scoresOf({ screening: screeningOf({}, { texts }) }, wanted)
  return { scorer, models, counts, scoresOf }
}

it('reads each text with the models that it is for, once', () => {
  const { models, scoresOf } = scorerOf()
  const roles = ['system', 'user', 'assistant', 'tool', 'passage', 'other'] as const
  const scores = scoresOf(roles.map((role) => ({ role, text: `${role} injection passage` })))
  expect(scores).toEqual({ injection: 0.9, 'passage-injection': 0.9, toxicity: 0.1 })
  expect(models.read).toEqual([
    'injection+toxicity: user injection passa',
    'passage-injection: tool injection passa',
    'passage-injection: passage injection pa',
  ])
})

it('leaves out what nobody wants, and keeps the worst of several texts', () => {
  const { scoresOf } = scorerOf()
  const texts = [
    { role: 'user', text: 'toxic' },
    { role: 'user', text: 'fine' },
  ] as const
  expect(scoresOf(texts, ['toxicity'])).toEqual({ toxicity: 0.9 })
  expect(scoresOf([], ['toxicity'])).toEqual({ toxicity: 0 })
})

it('undoes tricks of writing first', () => {
  const { models, scoresOf } = scorerOf()
  void scoresOf([{ role: 'tool', text: 'paѕѕage' }])
  expect(models.read).toEqual(['passage-injection: passage'])
})

it('pauses between the turns of long texts', async () => {
  const { counts, scoresOf } = scorerOf()
  const scores = scoresOf([{ role: 'user', text: `${'x'.repeat(70_000)} injection` }])
  expect(scores).toBeInstanceOf(Promise)
  expect(await scores).toMatchObject({ injection: 0.9 })
  expect(counts.pauses).toBe(5)
})

it('knows the models’ own thresholds', () => {
  expect(scorerOf().scorer.defaults).toEqual({ injection: 0.5, 'passage-injection': 0.5, toxicity: 0.5 })
})
