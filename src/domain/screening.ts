/**
 * Screening: what is looked for in what goes in and what comes out, and what follows from it.
 *
 * Two stages, because redaction changes a text and judging does not. *Rewriting* (PII, secrets, names, a tenant's own
 * patterns) is synchronous, in the gateway, before anything is counted, hashed, cached or logged. *Judging* (injection,
 * toxicity, abuse, a guard model) may take time; the ticket waits in its lane meanwhile. No type here but `ScreenText`
 * and the restorer of an answer holds text: findings, entries and refusals carry categories, scores and counts.
 */

/** Screens that find places in a text. */
export const REWRITING_SCREENS = ['pii', 'secrets', 'names', 'patterns'] as const
/** Screens that judge a text as a whole. */
export const JUDGING_SCREENS = ['injection', 'passage-injection', 'toxicity', 'abuse', 'guard'] as const

export type RewritingScreen = (typeof REWRITING_SCREENS)[number]
export type JudgingScreen = (typeof JUDGING_SCREENS)[number]
export type ScreenName = RewritingScreen | JudgingScreen

export type ScreenDirection = 'input' | 'output'

/**
 * What a finding leads to. `observe`: it is counted. `flag`: the client is told, too. `redact`: the place is replaced.
 * `block`: the request is refused, or the answer ends.
 */
export type ScreenAction = 'observe' | 'flag' | 'redact' | 'block'

/** What follows when a screen cannot say: served without it, refused, or judged by the screens below it. */
export type ScreenFailure = 'open' | 'closed' | 'degrade'

/** One place in a text, in UTF-16 units of the text as it was given. */
export interface EntitySpan {
  readonly screen: RewritingScreen
  /** `email`, `card`, `api-key`, … : stable, for metrics, placeholders and errors. */
  readonly category: string
  readonly start: number
  readonly end: number
}

/** Finds places in a text: sorted, without overlaps, in units of the text as it is given. Built once for a policy. */
export interface TextFinder {
  find(text: string): readonly EntitySpan[]
}

/** What a screen found, without the text. */
export interface ScreenFinding {
  readonly screen: ScreenName
  readonly direction: ScreenDirection
  readonly category: string
  readonly action: ScreenAction
  readonly count: number
  /** 0 … 1, of judges. */
  readonly score?: number
}

/** One screen in one direction, as a tenant wants it. A screen that is off has no rule. */
export interface ScreenRule {
  readonly screen: ScreenName
  readonly direction: ScreenDirection
  readonly action: ScreenAction
  /** Score from which on a judge's score is a finding; absent: the screen's own. */
  readonly scoreMin?: number
  readonly onFailure: ScreenFailure
}

/** How much of an answer is held back: what could still become an entity, up to the end of a sentence, or all of it. */
export type HoldMode =
  | { readonly kind: 'none' }
  | { readonly kind: 'entities' }
  | { readonly kind: 'sentences'; readonly tokensMax: number }
  | { readonly kind: 'whole' }

/** A tenant's own pattern, for an engine that takes linear time. */
export interface OwnPattern {
  readonly name: string
  readonly expression: string
}

/** The guard model: asked in the grey zone between two scores, within a time of its own. */
export interface GuardTerms {
  readonly model: string
  readonly route: 'chat' | 'moderations'
  readonly greyFrom: number
  readonly greyTo: number
  readonly timeoutUs: number
}

/** What a tenant wants screened, and how. The same object for all requests of a tenant until its settings change. */
export interface ScreeningTerms {
  /** Names this policy in the audit; changes with every setting in it. */
  readonly version: string
  readonly rules: readonly ScreenRule[]
  readonly hold: HoldMode
  /** `gate`: no turn before the verdict. `overlap`: on pools inside, the first token waits for it instead. */
  readonly join: 'gate' | 'overlap'
  /** Redacted values become placeholders that the answer gets back; otherwise they are gone. */
  readonly isReversible: boolean
  /** Texts that are never a finding, as they are written. */
  readonly allowed: readonly string[]
  readonly patterns: readonly OwnPattern[]
  /** Pictures, audio, files: passed on and marked `unscreened`, or refused. */
  readonly binary: 'pass' | 'refuse'
  readonly guard?: GuardTerms
}

/** What one tenant wants in place of the platform's policy, in the words of the settings. */
export type ScreeningWish = Readonly<Record<string, unknown>>

/** One text of a request, already rewritten. */
export interface ScreenText {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | 'passage' | 'other'
  readonly text: string
}

/** What the gateway found in a request, and what is left to do. Absent on a request whose tenant has no screens. */
export interface Screening {
  readonly terms: ScreeningTerms
  /** For the judges alone; empty in simulation. */
  readonly texts: readonly ScreenText[]
  readonly found: readonly ScreenFinding[]
  /** Kinds of parts that nobody could look into. */
  readonly unscreened: readonly string[]
  /** Gives the answer its true values back; only where the terms are reversible and something was replaced. */
  readonly restorer?: PlaceholderRestorer
  /** Rewrites what is read for the request later on, as its own text was; absent where nothing is rewritten. */
  readonly rewriter?: TextRewriter
}

/** Finds names of persons and postal addresses: slower than the other rules, so it has a thread of its own. */
export interface NameFinder {
  /** Here and now. */
  find(text: string): readonly EntitySpan[]
  /** In the thread; undefined: it has no place or no time, and the text has to be looked at here. */
  ask?(tenantId: string, text: string): Promise<readonly EntitySpan[] | undefined>
}

/** The rewriting of one request, for texts that come after its body. What it finds is added to the request's `found`. */
export interface TextRewriter {
  /** Undefined: the text has what the policy blocks, and must be left out. */
  rewrite(text: string): string | undefined
  /** The same, with turns for others in between: one text at a time. */
  rewriteInTurns(text: string): Promise<string | undefined>
}

/** A text that comes in pieces and goes out when it may: one per choice and channel of an answer. */
export interface TextHold {
  /** What may go out now, rewritten. */
  push(piece: string): string
  /** The rest, when no more comes. */
  flush(): string
  /** UTF-16 units that are held. */
  readonly heldLength: number
}

/** Placeholders of one ticket and what they stand for. Lives as long as the ticket, and is never written anywhere. */
export interface PlaceholderRestorer {
  /** The value behind a placeholder; undefined for one that nobody here made. */
  valueOf(placeholder: string): string | undefined
}

/** Whether answers to this request are looked at or changed on their way out. */
export const isAnswerScreened = ({ terms, restorer }: Screening): boolean =>
  restorer !== undefined || terms.rules.some(({ direction }) => direction === 'output')

/**
 * How an ask of the guard model ended. All but the first two are failures, and the policy says what follows.
 * `unasked`: its breaker is open, or too many asks are running.
 */
export const GUARD_ANSWERS = ['safe', 'unsafe', 'late', 'refused', 'lost', 'unreadable', 'unasked'] as const
export type GuardAnswer = (typeof GUARD_ANSWERS)[number]

/** What a key does over time: many blocked requests, or one prompt in many variations. */
export const ABUSE_KINDS = ['blocks', 'sweep'] as const
export type AbuseKind = (typeof ABUSE_KINDS)[number]

/** `told`: the operator knows. `slowed` and `paused`: the key's requests are refused for a short or a long while. */
export const ABUSE_RESPONSES = ['told', 'slowed', 'paused'] as const
export type AbuseResponse = (typeof ABUSE_RESPONSES)[number]

export const isJudging = (screen: ScreenName): screen is JudgingScreen =>
  (JUDGING_SCREENS as readonly string[]).includes(screen)

/** Screens that run in this process, on models of its own. */
export const EMBEDDED_SCREENS = ['injection', 'passage-injection', 'toxicity'] as const
export type EmbeddedScreen = (typeof EMBEDDED_SCREENS)[number]

/** 0 … 1 of each embedded screen; absent: it could not say. */
export type ScreenScores = Readonly<Partial<Record<EmbeddedScreen, number>>>

/** What the guard model said; `failed`: it could not, whatever the reason. */
export type GuardSaying =
  | { readonly kind: 'safe' | 'failed' }
  | { readonly kind: 'unsafe'; readonly categories: readonly string[] }
