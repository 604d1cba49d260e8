import {
  EMBEDDED_SCREENS,
  type EmbeddedScreen,
  type GuardSaying,
  type JudgingScreen,
  type ScreenFinding,
  type ScreeningTerms,
  type ScreenRule,
  type ScreenScores,
} from '../../domain/screening.ts'

/**
 * May this request go on, by what the screens say of it?
 *
 * Each embedded screen gives a score. From its threshold on the score is a finding, with the rule's action. A guard
 * model, where the tenant has one, decides in the *grey zone* between two scores, in both directions: it can find what
 * is below a threshold, and it can let go what is above one. Outside the zone it is not asked: below it nothing looks
 * wrong, above it the embedded screen is sure. For a screen without a rule of its own the zone has no upper end, because
 * nobody else would decide.
 *
 *   score     0 ──────── greyFrom ─────── scoreMin ─────── greyTo ─────── 1
 *   decides     passes  │        the guard model           │  the screen's rule
 *
 * When a screen cannot say, its own rule's `onFailure` counts. `open`: the request goes on without it. `closed`: it is
 * blocked. `degrade`: the screens below decide, which for the guard are the embedded ones with their thresholds, and for
 * an embedded screen there are none. A request that goes on so is `partial`.
 *
 * A guard whose action is `observe` is asked and not waited for: the embedded screens decide alone.
 *
 * Example: injection blocks from 0.7, grey from 0.3 to 0.9. A score of 0.8 is let go by a guard that says "safe", and
 * blocked by one that is away and degrades. A score of 0.95 is blocked at once.
 */
export interface Judgement {
  readonly kind: 'passed' | 'partial' | 'blocked'
  readonly findings: readonly ScreenFinding[]
  readonly skipped: readonly JudgingScreen[]
  readonly because: string
}

/** Thresholds of the models themselves, for rules that name none. */
export type ScoreDefaults = Readonly<Record<EmbeddedScreen, number>>

/** Screens whose scores lie in the grey zone; empty where nobody is to be asked. */
export function greyScreens(terms: ScreeningTerms, scores: ScreenScores): readonly EmbeddedScreen[] {
  const { guard } = terms
  if (guard === undefined || ruleOf(terms, 'guard') === undefined) return []
  return EMBEDDED_SCREENS.filter((screen) => {
    const score = scores[screen]
    if (score === undefined || score < guard.greyFrom) return false
    return ruleOf(terms, screen) === undefined || score <= guard.greyTo
  })
}

/** Whether the verdict waits for the guard. */
export const isGuardAwaited = (terms: ScreeningTerms): boolean =>
  (ruleOf(terms, 'guard')?.action ?? 'observe') !== 'observe'

export function decideVerdict(
  terms: ScreeningTerms,
  scores: ScreenScores,
  defaults: ScoreDefaults,
  guard?: GuardSaying,
): Judgement {
  const deferred = guard === undefined ? [] : greyScreens(terms, scores)
  const judged: Judged = { findings: [], skipped: [] }
  for (const screen of EMBEDDED_SCREENS) {
    const rule = ruleOf(terms, screen)
    const score = scores[screen]
    if (rule === undefined) continue
    if (score === undefined) couldNotSay(judged, rule)
    else if (score >= (rule.scoreMin ?? defaults[screen])) {
      const action = deferred.includes(screen) ? deferredAction(terms, rule, guard) : rule.action
      judged.findings.push(findingOf(rule, { category: screen, action, score }))
    }
  }
  const guardRule = ruleOf(terms, 'guard')
  if (guard !== undefined && guardRule !== undefined) hearGuard(judged, guardRule, guard)
  return summed(judged)
}

/** What follows from one passage of a corpus; the guard is not asked about it. */
export function decidePassage(
  terms: ScreeningTerms,
  scores: ScreenScores,
  defaults: ScoreDefaults,
): ScreenFinding | undefined {
  const rule = ruleOf(terms, 'passage-injection')
  const score = scores['passage-injection']
  if (rule === undefined || score === undefined || score < (rule.scoreMin ?? defaults['passage-injection']))
    return undefined
  return findingOf(rule, { category: rule.screen, action: rule.action, score })
}

interface Judged {
  readonly findings: ScreenFinding[]
  readonly skipped: JudgingScreen[]
}

const ruleOf = ({ rules }: ScreeningTerms, screen: JudgingScreen): JudgingRule | undefined =>
  rules.find((rule): rule is JudgingRule => rule.screen === screen && rule.direction === 'input')

type JudgingRule = ScreenRule & { readonly screen: JudgingScreen }

/** What follows from a score that the guard was asked about. */
function deferredAction(
  terms: ScreeningTerms,
  rule: ScreenRule,
  guard: GuardSaying | undefined,
): ScreenFinding['action'] {
  if (guard?.kind === 'unsafe') return rule.action
  if (guard?.kind === 'safe') return 'observe'
  return ruleOf(terms, 'guard')?.onFailure === 'degrade' ? rule.action : 'observe'
}

/** Categories of one answer that are told; a guard model has 14. */
const CATEGORIES_MAX = 4

function hearGuard(judged: Judged, rule: JudgingRule, guard: GuardSaying): void {
  if (guard.kind === 'failed') couldNotSay(judged, rule)
  if (guard.kind !== 'unsafe') return
  for (const category of guard.categories.slice(0, CATEGORIES_MAX))
    judged.findings.push(findingOf(rule, { category, action: rule.action }))
}

function couldNotSay({ findings, skipped }: Judged, rule: JudgingRule): void {
  skipped.push(rule.screen)
  if (rule.onFailure === 'closed') findings.push(findingOf(rule, { category: 'unavailable', action: 'block' }))
}

const findingOf = (
  { screen, direction }: ScreenRule,
  found: Pick<ScreenFinding, 'category' | 'action' | 'score'>,
): ScreenFinding => ({ screen, direction, count: 1, ...found })

function summed({ findings, skipped }: Judged): Judgement {
  const kind = findings.some(({ action }) => action === 'block') ? 'blocked' : skipped.length > 0 ? 'partial' : 'passed'
  const found = findings.map(
    ({ screen, category, score }) => `${screen} ${category}${score === undefined ? '' : ` ${score.toFixed(2)}`}`,
  )
  const unsaid = skipped.length === 0 ? [] : [`${skipped.join(', ')} could not say`]
  return { kind, findings, skipped, because: [...found, ...unsaid].join('; ') || 'nothing was found' }
}
