import type { JudgingScreen } from '../domain/screening.ts'
import { EntityHold } from './entities/entity-hold.ts'
import { makeFinders } from './entity-finders.ts'
import type { TextModel } from './models/safety-models.ts'
import { normalise } from './normalise.ts'
import type { AnswerScorer, AnswerScreenParts } from './screen-parts.ts'

/** What answers are screened with in a running server: the rules for entities, and the model that reads answers. */
export interface AnswerModels {
  get(name: 'toxicity'): Pick<TextModel, 'scoreMin' | 'score'>
}

export function embeddedAnswers(models: AnswerModels): AnswerScreenParts {
  const finderOf = makeFinders()
  return {
    makeEntityHold: (terms, replace) => new EntityHold(finderOf(terms, 'output'), replace),
    judgeOf: (screen) => judgeOf(models, screen),
  }
}

/** A guard model takes its time, and the other judges read what goes in. */
function judgeOf(models: AnswerModels, screen: JudgingScreen): AnswerScorer | undefined {
  if (screen !== 'toxicity') return undefined
  const model = models.get('toxicity')
  return { category: screen, scoreMin: model.scoreMin, score: (text) => model.score(normalise(text).text) }
}
