import type { Cancellation } from '../base/cancellation.ts'
import type { Delta, Usage } from '../domain/delta.ts'
import type { HarmFindings } from '../domain/harm.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Segment } from '../domain/request.ts'
import type { JudgingScreen, ScreenFinding, Screening, ScreenName } from '../domain/screening.ts'

/**
 * May this be asked, and may this be answered?
 *
 * Obligations: `judge` never throws, and settles within a bound of its own, whatever it asks. A judge that needs no
 * waiting answers at once. `screenAnswer` gives one screen per answer, which sees every delta of it in order.
 */
export interface Screener {
  judge(ask: ScreenAsk): Promise<ScreenVerdict> | ScreenVerdict
  /** The gateway has blocked a request of this key while it rewrote it: `judge` is not asked about it. */
  noteBlock?(blocked: Pick<ScreenAsk, 'tenantId' | 'keyId' | 'screening'>): void
  /** One finding or none for each passage, by the tenant's rule for passages; undefined when it cannot say. */
  judgePassages?(
    ask: Pick<ScreenAsk, 'requestId' | 'screening'>,
    passages: readonly string[],
  ): Promise<PassageFindings | undefined> | PassageFindings | undefined
  /** Undefined where nothing of the answer is screened or restored. */
  screenAnswer(screening: Screening): AnswerScreen | undefined
}

export type PassageFindings = ReadonlyArray<ScreenFinding | undefined>

export interface ScreenAsk {
  readonly requestId: string
  readonly tenantId: string
  readonly keyId: string
  /** About how long the request is: all that is known of it in simulation, where there are no texts. */
  readonly promptTokens: number
  readonly screening: Screening
  readonly cancellation: Cancellation
  /** The guard model, through the platform's own pools. Never throws, and answers within the question's time. */
  readonly askGuard: (question: GuardQuestion) => Promise<GuardReply>
}

/** What a guard model is asked: a prompt of ours around a text, or the text for its moderations endpoint. */
export interface GuardQuestion {
  readonly model: string
  readonly route: 'chat' | 'moderations'
  readonly timeoutUs: number
  /** The body without the model's name; empty in simulation. */
  readonly body: Readonly<Record<string, unknown>>
  /** One for each message of the body: a plan keeps or leaves out messages by their segments. */
  readonly segments: readonly Segment[]
  readonly outputTokensMax: number
}

/** The guard model's own words, or why there are none. `moot`: the request is over, and nobody waits for them. */
export type GuardReply =
  | { readonly kind: 'answered'; readonly text: string }
  | { readonly kind: 'moot' }
  | { readonly kind: 'late' | 'refused' | 'lost' | 'unasked'; readonly because: string }

export interface ScreenVerdict {
  /** `partial`: a screen could not say, and the policy lets such a request go on. */
  readonly kind: 'passed' | 'partial' | 'blocked'
  readonly findings: readonly ScreenFinding[]
  /** Screens that could not say; none if absent. */
  readonly skipped?: readonly JudgingScreen[]
  /** Set when the key is paused for what its earlier requests were: when it may come back. */
  readonly retryAfterUs?: number
  /** In words for the journal and the client: screens and categories, never text. */
  readonly because: string
}

/**
 * One answer on its way out. What could still become a finding is held; the rest goes on. Tokens that are held come with
 * the next delta that is released. An engine's own text (`frame`, `ahead`) goes out only where nothing may be changed.
 */
export interface AnswerScreen {
  /** What may go out now; undefined when all of it is held. */
  write(delta: Delta): Delta | undefined
  /** The answer is whole, or breaks off: what was held, looked at for the last time. */
  flush(): Delta | undefined
  /** Set when the answer must end here, with the finish reason `content_filter`. */
  readonly blockedBy: ScreenFinding | undefined
  readonly findings: readonly ScreenFinding[]
  /** Names of what the engine said that has no place in a screened answer: log probabilities, unknown members. */
  readonly dropped: readonly string[]
  /** Kinds of parts of the answer that nobody could look into. */
  readonly unscreened: readonly string[]
  /** Screens that the policy wants and that cannot read an answer. */
  readonly skipped: readonly ScreenName[]
  /** UTF-16 units that are held. */
  readonly heldLength: number
  /** The usage for the client, without words of the engine that nobody has read. */
  closing(usage: Usage): Usage
  /** A refusal for the client: an engine's own words may quote the prompt. */
  refusal(refusal: Refusal): Refusal
}

/** What harm is in a text? Says what it finds and keeps nothing; a long text is read in turns. */
export interface Moderator {
  harmsOf(text: string): Promise<HarmFindings>
}
