import { Breaker } from '../base/breaker.ts'
import type { Clock } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import {
  EMBEDDED_SCREENS,
  type EmbeddedScreen,
  type GuardAnswer,
  type GuardSaying,
  type GuardTerms,
  type ScreenAction,
  type ScreenFinding,
  type Screening,
  type ScreeningTerms,
  type ScreenScores,
} from '../domain/screening.ts'
import type {
  AnswerScreen,
  GuardReply,
  PassageFindings,
  ScreenAsk,
  Screener,
  ScreenVerdict,
} from '../lifecycle/screening-ports.ts'
import { decidePassage, decideVerdict, greyScreens, isGuardAwaited } from '../policy/screening/decide-verdict.ts'
import { type ConductNotice, KeyConducts } from '../policy/screening/key-conduct.ts'
import { makeGuardQuestion } from './guard-question.ts'
import { type GuardVerdict, readGuardVerdict } from './guard-verdict.ts'
import { signatureOf } from './prompt-signature.ts'
import type { ScreenScorer } from './scores.ts'

/**
 * The judges, in layers: is the key paused? ─▶ embedded models ─▶ in the grey zone, the guard model ─▶ a verdict. What
 * follows from what they say is `policy/screening`'s to decide; this file asks them in order.
 *
 * A verdict that needs no guard and no long text is there at once. Bounds: the guard's own time; one breaker for each
 * guard model, `BREAKERS_MAX` of them; the meters of keys (`key-conduct.ts`).
 */
export interface ScreenerOptions {
  readonly clock: Clock
  readonly record: (entry: Entry) => void
  readonly scorer: ScreenScorer
  /** Screens of answers; none where absent. */
  readonly screenAnswer?: (screening: Screening) => AnswerScreen | undefined
  /** Reads the guard's words; in simulation there are none, and the scenario says what it found. */
  readonly readGuard?: (ask: ScreenAsk, route: GuardTerms['route'], text: string) => GuardVerdict
}

type BlockedKey = Pick<ScreenAsk, 'tenantId' | 'keyId' | 'screening'>

const PASSAGE_ONLY = ['passage-injection'] as const

/** Guard models that have a breaker of their own. Fleets have one or two. */
const BREAKERS_MAX = 64

export class SafetyScreener implements Screener {
  readonly #options: ScreenerOptions
  readonly #conducts = new KeyConducts()
  readonly #breakers = new Map<string, Breaker>()

  constructor(options: ScreenerOptions) {
    this.#options = options
  }

  screenAnswer(screening: Screening): AnswerScreen | undefined {
    return this.#options.screenAnswer?.(screening)
  }

  judge(ask: ScreenAsk): Promise<ScreenVerdict> | ScreenVerdict {
    const { terms } = ask.screening
    const abuse = inputAction(terms, 'abuse')
    const paused = abuse === 'block' ? this.#pausedVerdict(ask) : undefined
    if (paused !== undefined) return paused
    if (abuse !== undefined) this.#notePrompt(ask, abuse)
    const wanted = wantedOf(terms)
    if (wanted.length === 0) return this.#conclude(ask, {}, undefined)
    const scores = this.#options.scorer.scoresOf(ask, wanted)
    return scores instanceof Promise ? scores.then((given) => this.#weigh(ask, given)) : this.#weigh(ask, scores)
  }

  noteBlock(blocked: BlockedKey): void {
    const abuse = inputAction(blocked.screening.terms, 'abuse')
    if (abuse === undefined) return
    const now = this.#options.clock.now()
    this.#tell(blocked, this.#conducts.observeBlock(now, keyOf(blocked), abuse === 'block'))
  }

  judgePassages(
    { requestId, screening }: Pick<ScreenAsk, 'requestId' | 'screening'>,
    passages: readonly string[],
  ): Promise<PassageFindings> | PassageFindings {
    const { scorer } = this.#options
    const scored = passages.map((text) =>
      scorer.scoresOf({ requestId, screening: { ...screening, texts: [{ role: 'passage', text }] } }, PASSAGE_ONLY),
    )
    const decide = (scores: ScreenScores): ScreenFinding | undefined =>
      decidePassage(screening.terms, scores, scorer.defaults)
    if (scored.every((scores) => !(scores instanceof Promise))) return (scored as ScreenScores[]).map(decide)
    return Promise.all(scored.map((scores) => Promise.resolve(scores))).then((all) => all.map(decide))
  }

  #weigh(ask: ScreenAsk, scores: ScreenScores): Promise<ScreenVerdict> | ScreenVerdict {
    const { terms } = ask.screening
    const { guard } = terms
    if (guard === undefined || greyScreens(terms, scores).length === 0) return this.#conclude(ask, scores, undefined)
    const saying = this.#askGuard(ask, guard)
    if (isGuardAwaited(terms)) return saying.then((said) => this.#conclude(ask, scores, said))
    // A guard that only observes is heard in the journal.
    void saying
    return this.#conclude(ask, scores, undefined)
  }

  #conclude(ask: ScreenAsk, scores: ScreenScores, guard: GuardSaying | undefined): ScreenVerdict {
    const { terms } = ask.screening
    const verdict = decideVerdict(terms, scores, this.#options.scorer.defaults, guard)
    // What is blocked because a screen is away says nothing about the key.
    const isFound = verdict.findings.some(({ action, category }) => action === 'block' && category !== 'unavailable')
    if (isFound) this.noteBlock(ask)
    return verdict
  }

  /** Asks through the platform's own pools; whatever goes wrong is a saying, too. */
  async #askGuard(ask: ScreenAsk, guard: GuardTerms): Promise<GuardSaying> {
    const { clock, record } = this.#options
    const startedAt = clock.now()
    const breaker = this.#breakerOf(guard.model)
    const { question, isWhole } = makeGuardQuestion(guard, ask.screening.texts, ask.promptTokens)
    const reply: GuardReply = breaker.mayTry(startedAt)
      ? await ask.askGuard(question)
      : { kind: 'unasked', because: 'its breaker is open' }
    if (reply.kind === 'moot') return { kind: 'failed' }
    const verdict = reply.kind === 'answered' ? this.#read(ask, guard, reply.text) : undefined
    const answer: GuardAnswer = reply.kind === 'answered' ? (verdict?.kind ?? 'unreadable') : reply.kind
    const because = reply.kind === 'answered' ? SAID[answer as keyof typeof SAID] : reply.because
    this.#teach(breaker, answer, because)
    record({
      kind: 'guard-answered',
      at: clock.now(),
      ticketId: ask.requestId,
      tenantId: ask.tenantId,
      model: guard.model,
      answer,
      tookUs: clock.now() - startedAt,
      because,
    })
    if (verdict?.kind === 'unsafe') return verdict
    // "Safe" counts only for a text that the guard has seen whole.
    return verdict?.kind === 'safe' && isWhole ? { kind: 'safe' } : { kind: 'failed' }
  }

  #read(ask: ScreenAsk, { route }: GuardTerms, text: string): GuardVerdict {
    return this.#options.readGuard?.(ask, route, text) ?? readGuardVerdict(route, text)
  }

  #teach(breaker: Breaker, answer: GuardAnswer, because: string): void {
    const now = this.#options.clock.now()
    if (answer === 'safe' || answer === 'unsafe') breaker.succeeded(now)
    else if (answer !== 'unasked') breaker.failed(now, because)
  }

  #breakerOf(model: string): Breaker {
    const { clock, record } = this.#options
    const known = this.#breakers.get(model)
    if (known !== undefined) return known
    const breaker = new Breaker((state, at, because) =>
      record({ kind: 'breaker-changed', at, what: `guard ${model}`, state, ...(because !== undefined && { because }) }),
    )
    if (this.#breakers.size >= BREAKERS_MAX)
      for (const [oldest] of this.#breakers) {
        this.#breakers.delete(oldest)
        break
      }
    this.#breakers.set(model, breaker)
    record({ kind: 'breaker-changed', at: clock.now(), what: `guard ${model}`, state: 'closed' })
    return breaker
  }

  /** The key has to wait, whatever it asks. */
  #pausedVerdict(ask: ScreenAsk): ScreenVerdict | undefined {
    const retryAfterUs = this.#conducts.pauseUs(this.#options.clock.now(), keyOf(ask))
    if (retryAfterUs === 0) return undefined
    const finding = { screen: 'abuse', direction: 'input', category: 'paused', action: 'block', count: 1 } as const
    const because = 'The key is paused for what its requests were.'
    return { kind: 'blocked', findings: [finding], skipped: [], retryAfterUs, because }
  }

  #notePrompt(ask: ScreenAsk, abuse: ScreenAction): void {
    const last = ask.screening.texts.findLast(({ role }) => role === 'user')
    if (last === undefined) return
    const now = this.#options.clock.now()
    this.#tell(ask, this.#conducts.observePrompt(now, keyOf(ask), signatureOf(last.text), abuse === 'block'))
  }

  #tell({ tenantId, keyId }: BlockedKey, notice: ConductNotice | undefined): void {
    if (notice === undefined) return
    const { clock, record } = this.#options
    const what = notice.abuse === 'blocks' ? 'requests were blocked' : 'prompts are nearly the same'
    record({
      kind: 'abuse-noticed',
      at: clock.now(),
      tenantId,
      keyId,
      ...notice,
      because: `${notice.count} of its latest ${what}`,
    })
  }
}

/** Screens to be scored: those with a rule; all of them where a guard model sorts by their scores. */
function wantedOf(terms: ScreeningTerms): readonly EmbeddedScreen[] {
  if (inputAction(terms, 'guard') !== undefined && terms.guard !== undefined) return EMBEDDED_SCREENS
  return EMBEDDED_SCREENS.filter((screen) => inputAction(terms, screen) !== undefined)
}

const inputAction = ({ rules }: ScreeningTerms, screen: string): ScreenAction | undefined =>
  rules.find((rule) => rule.screen === screen && rule.direction === 'input')?.action

const keyOf = ({ tenantId, keyId }: BlockedKey): string => `${tenantId}/${keyId}`

const SAID = {
  safe: 'it says safe',
  unsafe: 'it says unsafe',
  unreadable: 'its answer is no verdict',
} as const
