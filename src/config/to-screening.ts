import { createHash } from 'node:crypto'
import { msToUs } from '../base/clock.ts'
import type {
  GuardTerms,
  HoldMode,
  OwnPattern,
  ScreenAction,
  ScreenDirection,
  ScreeningTerms,
  ScreenName,
  ScreenRule,
} from '../domain/screening.ts'
import type { ScreeningConfig } from './schema.ts'

/**
 * Settings of screening → a tenant's terms. For each screen and direction the most exact word counts: the tenant's for
 * this direction, the tenant's for both, the platform's for this direction, the platform's for both. Lists (`allowed`,
 * `ownPatterns`) add up: a tenant can add to what the platform looks for and allows, and take nothing from it but by
 * turning a screen off.
 */
type SettingName =
  | 'pii'
  | 'secrets'
  | 'names'
  | 'patterns'
  | 'injection'
  | 'passageInjection'
  | 'toxicity'
  | 'abuse'
  | 'guard'

interface ScreenPlace {
  readonly setting: SettingName
  readonly screen: ScreenName
  readonly directions: readonly ScreenDirection[]
}

const BOTH: readonly ScreenDirection[] = ['input', 'output']
const IN: readonly ScreenDirection[] = ['input']

export const SCREEN_PLACES: readonly ScreenPlace[] = [
  { setting: 'pii', screen: 'pii', directions: BOTH },
  { setting: 'secrets', screen: 'secrets', directions: BOTH },
  { setting: 'names', screen: 'names', directions: BOTH },
  { setting: 'patterns', screen: 'patterns', directions: BOTH },
  { setting: 'injection', screen: 'injection', directions: IN },
  { setting: 'passageInjection', screen: 'passage-injection', directions: IN },
  { setting: 'toxicity', screen: 'toxicity', directions: BOTH },
  { setting: 'abuse', screen: 'abuse', directions: IN },
  { setting: 'guard', screen: 'guard', directions: IN },
]

/** Undefined: nothing is screened. */
export function toScreening(platform: ScreeningConfig, own: ScreeningConfig = {}): ScreeningTerms | undefined {
  const rules = SCREEN_PLACES.flatMap((place) => place.directions.flatMap((direction) => ruleOf(place, direction)))
  if (rules.length === 0) return undefined
  const guard = own.guardModel ?? platform.guardModel
  const terms: Omit<ScreeningTerms, 'version'> = {
    rules,
    hold: holdOf(own.hold ?? platform.hold ?? 'entities'),
    join: own.join ?? platform.join ?? 'gate',
    isReversible: own.reversible ?? platform.reversible ?? false,
    allowed: [...new Set([...(platform.allowed ?? []), ...(own.allowed ?? [])])],
    patterns: patternsOf(platform, own),
    binary: own.binary ?? platform.binary ?? 'pass',
    ...(guard !== undefined && { guard: guardOf(guard) }),
  }
  return { version: versionOf(terms), ...terms }

  function ruleOf({ setting, screen }: ScreenPlace, direction: ScreenDirection): ScreenRule[] {
    const action = actionOf(platform, own, setting, direction)
    if (action === 'off') return []
    const scoreMin = numberOf(own.scoreMin, setting) ?? numberOf(platform.scoreMin, setting)
    const onFailure = wordOf(own.onFailure, setting) ?? wordOf(platform.onFailure, setting)
    return [
      {
        screen,
        direction,
        action,
        ...(scoreMin !== undefined && { scoreMin }),
        onFailure: onFailure ?? (action === 'block' ? 'closed' : 'open'),
      },
    ]
  }
}

/** What follows from a finding of one screen in one direction. */
function actionOf(
  platform: ScreeningConfig,
  own: ScreeningConfig,
  setting: SettingName,
  direction: ScreenDirection,
): ScreenAction | 'off' {
  const inDirection = (config: ScreeningConfig): ScreenAction | 'off' | undefined =>
    (config[direction] as ScreeningConfig['input'])?.[setting] ?? config[setting]
  return inDirection(own) ?? inDirection(platform) ?? 'off'
}

const numberOf = (scores: ScreeningConfig['scoreMin'], setting: SettingName): number | undefined =>
  (scores as Partial<Record<SettingName, number>> | undefined)?.[setting]

const wordOf = (words: ScreeningConfig['onFailure'], setting: SettingName): ScreenRule['onFailure'] | undefined =>
  (words as Partial<Record<SettingName, ScreenRule['onFailure']>> | undefined)?.[setting]

function holdOf(text: string): HoldMode {
  if (text === 'none' || text === 'whole') return { kind: text }
  if (!text.startsWith('sentences:')) return { kind: 'entities' }
  return { kind: 'sentences', tokensMax: Number(text.slice('sentences:'.length)) }
}

/** A tenant's pattern takes the place of the platform's of the same name. */
function patternsOf(platform: ScreeningConfig, own: ScreeningConfig): OwnPattern[] {
  const byName = new Map([...(platform.ownPatterns ?? []), ...(own.ownPatterns ?? [])].map((one) => [one.name, one]))
  return [...byName.values()]
}

function guardOf({ timeoutMs, ...guard }: NonNullable<ScreeningConfig['guardModel']>): GuardTerms {
  return { ...guard, timeoutUs: msToUs(timeoutMs) }
}

/** Characters of a policy's name: enough to tell all policies of an audit apart. */
const VERSION_CHARACTERS = 12

const versionOf = (terms: object): string =>
  createHash('sha256').update(JSON.stringify(terms)).digest('hex').slice(0, VERSION_CHARACTERS)
