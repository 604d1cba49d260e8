import { breathe } from '../assembly/live-backends.ts'
import type { Clock } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import { LiveClock } from '../base/live-clock.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Journal } from '../lifecycle/ports.ts'
import type { Moderator, Screener } from '../lifecycle/screening-ports.ts'
import { AnswerScreens } from '../safety/answer-screen.ts'
import { embeddedAnswers } from '../safety/embedded-answers.ts'
import { loadSafetyModels } from '../safety/models/fs-safety-models.ts'
import type { SafetyModels } from '../safety/models/safety-models.ts'
import { EmbeddedModerator } from '../safety/moderator.ts'
import { loadNameTagger } from '../safety/names/fs-name-tagger.ts'
import { ThreadedNameFinder } from '../safety/names/live-name-finder.ts'
import type { NameTagger } from '../safety/names/name-tagger.ts'
import { normalise } from '../safety/normalise.ts'
import { ModelScorer } from '../safety/scores.ts'
import { SafetyScreener } from '../safety/screener.ts'

/**
 * The judges of a live server. Their models are read and have scored their self-tests before the server listens, so it
 * is never ready with a screen that does not work, and no request is the first. That takes ten milliseconds, half a
 * megabyte, and is done for every server: a tenant with screens may come at any time.
 */
export function makeLiveSafety(clock: Clock, journal: Journal, weights?: string): LiveSafety {
  const models = warmModels(weights)
  const scorer = scorerOf(models)
  const answers = new AnswerScreens(embeddedAnswers(models))
  const screener = new SafetyScreener({
    clock,
    scorer,
    record: (entry) => journal.record(entry),
    screenAnswer: (screening) => answers.of(screening),
  })
  const names = new ThreadedNameFinder({ clock, tagger: warmTagger() })
  return { screener, moderator: new EmbeddedModerator(models, read, breathe), names }
}

export interface LiveSafety {
  readonly screener: SafetyScreener
  readonly moderator: Moderator
  readonly names: ThreadedNameFinder
}

/** A text as it reads to somebody who looks at it. */
const read = (text: string): string => normalise(text).text

const scorerOf = (models: SafetyModels): ModelScorer => new ModelScorer({ models, normalise: read, pause: breathe })

/** The judges without a server: their conduct of keys begins and ends with the process, and nothing is journalled. */
export function makeOfflineJudge(): Screener['judge'] {
  const screener = new SafetyScreener({
    clock: new LiveClock(),
    scorer: scorerOf(warmModels(undefined)),
    record: () => {},
  })
  return (ask) => screener.judge(ask)
}

/** A text of ours in which the tagger of names has found one name since it was trained. */
const NAMED = { text: 'My name is Anna Schmidt, and I have a question.', name: 'Anna Schmidt' }

/** The tagger, once it has passed its self-test. */
export function warmTagger(file?: string): NameTagger {
  const advice = 'Reinstall Spillway, or train it anew: bench/safety/train-names.ts.'
  try {
    const tagger = loadNameTagger(file)
    const found = tagger.find(NAMED.text).map(({ start, end }) => NAMED.text.slice(start, end))
    if (found.length === 1 && found[0] === NAMED.name) return tagger
  } catch (error) {
    throw new ConfigError([`The tagger of names cannot be loaded: ${detailOf(error)}. ${advice}`])
  }
  throw new ConfigError([`The tagger of names does not pass its self-test. ${advice}`])
}

function warmModels(weights: string | undefined): SafetyModels {
  const advice = 'Reinstall Spillway, or train them anew: bench/safety/train.ts.'
  try {
    const models = loadSafetyModels(weights)
    const failed = models.failedSelfTests()
    if (failed.length === 0) return models
    throw new ConfigError([
      `The safety models ${failed.join(', ')} do not score their self-tests as trained. ${advice}`,
    ])
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError([`The weights of the safety models cannot be read: ${detailOf(error)}. ${advice}`])
  }
}
