import { US_PER_S } from '../../base/clock.ts'
import { ConfigError } from '../../config/config-error.ts'
import type { ConfigFile } from '../../config/fs-config-file.ts'
import type { Config } from '../../config/schema.ts'
import { openTrace, surveyTrace, type TraceSurvey } from '../traces/fs-trace.ts'
import { TraceError } from '../traces/trace.ts'
import { replayTree } from './replay-scenario.ts'
import { chatModelsOf } from './scenario-config.ts'

/** A recording on the platform of a configuration, as the file of a scenario. */
export interface Replay {
  readonly file: ConfigFile
  readonly survey: TraceSurvey
  readonly notes: readonly string[]
}

export interface ReplayAsk {
  readonly path: string
  /** Speed of the recording's time. */
  readonly factor: number
  /** Pools of real engines get the profile that the command names; without one they get a usual one, with a note. */
  readonly isProfileGiven: boolean
}

export function openReplay(config: Config, { path, factor, isProfileGiven }: ReplayAsk): Replay {
  const survey = surveyed(path, factor)
  const { tree, guessed } = replayTree(config, { name: path, durationS: Math.ceil(survey.lastAtUs / US_PER_S) + 1 })
  const tenants = new Set(config.tenants.map(({ id }) => id))
  const models = chatModelsOf(config)
  const [chat] = models
  if (chat === undefined) throw new ConfigError(['the configuration has no chat model to play a recording on.'])
  const notes = [
    ...strangers('tenants', survey.tenants, tenants, `get the settings of ${config.tenants[0]?.id}`),
    ...strangers('models', survey.models, models, `are played as ${chat}`),
    ...(isProfileGiven ? [] : guessed),
  ]
  return { file: { path, tree, lineOf: () => undefined }, survey, notes }
}

function surveyed(path: string, factor: number): TraceSurvey {
  try {
    return surveyTrace(openTrace(path, { factor }))
  } catch (error) {
    throw error instanceof TraceError ? new ConfigError([error.message]) : error
  }
}

/** What the recording names and the configuration does not have. */
function strangers(what: string, names: readonly string[], known: ReadonlySet<string>, fate: string): string[] {
  const unknown = names.filter((name) => !known.has(name))
  return unknown.length === 0 ? [] : [`${what} that are not in the configuration ${fate}: ${listed(unknown)}.`]
}

const NAMES_MAX = 5

const listed = (names: readonly string[]): string =>
  names.length <= NAMES_MAX
    ? names.join(', ')
    : `${names.slice(0, NAMES_MAX).join(', ')} and ${names.length - NAMES_MAX} more`
