import type {
  EntitySpan,
  JudgingScreen,
  PlaceholderRestorer,
  RewritingScreen,
  ScreenAction,
  Screening,
  ScreeningTerms,
  ScreenName,
  TextHold,
} from '../domain/screening.ts'
import type { ReplaceEntity } from './entities/entity-hold.ts'
import type { FindingTally } from './findings.ts'
import type { KeptHold } from './restoring-hold.ts'
import { RestoringHold } from './restoring-hold.ts'
import { type AnswerJudge, SentenceHold } from './sentence-hold.ts'
import { BLOCK_MARK, TextChannel } from './text-channel.ts'

/** What answers are screened with; one for the whole process. */
export interface AnswerScreenParts {
  /** Holds what could still become an entity of these screens, and puts `replace` in the place of one. */
  readonly makeEntityHold: (terms: ScreeningTerms, replace: ReplaceEntity) => TextHold
  /** A judge that answers at once; undefined for one that cannot judge an answer. */
  readonly judgeOf: (screen: JudgingScreen) => AnswerScorer | undefined
}

export interface AnswerScorer {
  readonly category: string
  readonly scoreMin: number
  score(text: string): number
}

/** What a tenant's terms mean for its answers: made once for each policy. */
export class AnswerPolicy {
  readonly terms: ScreeningTerms
  /** Text may change, or end, on its way: then nothing of the engine's own text is passed on. */
  readonly isRewriting: boolean
  readonly isScreening: boolean
  /** Screens that the policy wants and that cannot read an answer. */
  readonly skipped: readonly ScreenName[]
  /** Names the policy in a finding about an answer that nobody can look into. */
  readonly firstScreen: ScreenName
  readonly #parts: AnswerScreenParts
  readonly #actions: ReadonlyMap<RewritingScreen, ScreenAction>
  readonly #judges: readonly AnswerJudge[]

  constructor(parts: AnswerScreenParts, terms: ScreeningTerms) {
    this.terms = terms
    this.#parts = parts
    const rules = terms.rules.filter(({ direction }) => direction === 'output')
    const isNone = terms.hold.kind === 'none'
    const actions = new Map<RewritingScreen, ScreenAction>()
    const judges: AnswerJudge[] = []
    const isUnread = (screen: ScreenName): boolean => !isRewritingScreen(screen) && parts.judgeOf(screen) === undefined
    for (const { screen, action, scoreMin } of rules) {
      const scorer = isRewritingScreen(screen) ? undefined : parts.judgeOf(screen)
      // Nothing is held, so nothing can be replaced any more: what was found is counted as what it is.
      if (isRewritingScreen(screen)) actions.set(screen, isNone && action === 'redact' ? 'observe' : action)
      else if (scorer !== undefined)
        judges.push({
          screen,
          category: scorer.category,
          action,
          scoreMin: scoreMin ?? scorer.scoreMin,
          score: (text) => scorer.score(text),
        })
    }
    this.#actions = actions
    this.#judges = judges
    this.skipped = rules.flatMap(({ screen }) => (screen === 'names' || isUnread(screen) ? [screen] : []))
    this.firstScreen = rules[0]?.screen ?? 'pii'
    this.isScreening = actions.size + judges.length > 0
    this.isRewriting = !isNone && [...actions.values(), ...judges.map(({ action }) => action)].some(isChanging)
  }

  /** One text of an answer. */
  makeText(tally: FindingTally, restorer: PlaceholderRestorer | undefined): KeptHold {
    const { hold } = this.terms
    const holds: TextHold[] = []
    const watchers: TextHold[] = []
    if (this.#actions.size > 0) {
      const entities = this.#parts.makeEntityHold(this.terms, (value, span) => this.#replace(tally, value, span))
      if (this.isRewriting) holds.push(entities)
      else watchers.push(entities)
    }
    const isHeld = hold.kind === 'sentences' || hold.kind === 'whole'
    if (isHeld && this.isRewriting) holds.push(new SentenceHold(this.#judges, tally, tokensMaxOf(hold)))
    else if (this.#judges.length > 0) watchers.push(new SentenceHold(this.#judges, tally, WATCHED_TOKENS))
    const restoring = restorer === undefined ? undefined : new RestoringHold(restorer)
    return new TextChannel({ tally, holds, watchers, restoring })
  }

  #replace(tally: FindingTally, value: string, { screen, category }: EntitySpan): string {
    const action = this.#actions.get(screen)
    if (action === undefined || tally.blockedBy !== undefined) return value
    tally.note(screen, category, action)
    if (action === 'block') return BLOCK_MARK
    return action === 'redact' ? `<${category.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}>` : value
  }
}

/** Tokens of a sentence that a judge sees at once where nothing is held for it. */
const WATCHED_TOKENS = 64

const isChanging = (action: ScreenAction): boolean => action === 'redact' || action === 'block'

const isRewritingScreen = (screen: string): screen is RewritingScreen =>
  screen === 'pii' || screen === 'secrets' || screen === 'names' || screen === 'patterns'

const tokensMaxOf = (hold: ScreeningTerms['hold']): number | undefined =>
  hold.kind === 'sentences' ? hold.tokensMax : undefined

/** Policies by their terms: the same object for all requests of a tenant until its settings change. */
export class AnswerPolicies {
  readonly #parts: AnswerScreenParts
  readonly #known = new WeakMap<ScreeningTerms, AnswerPolicy>()

  constructor(parts: AnswerScreenParts) {
    this.#parts = parts
  }

  of({ terms }: Screening): AnswerPolicy {
    const known = this.#known.get(terms)
    if (known !== undefined) return known
    const made = new AnswerPolicy(this.#parts, terms)
    this.#known.set(terms, made)
    return made
  }
}
