import type { Instant } from '../base/clock.ts'
import type { AbuseKind, AbuseResponse, GuardAnswer, ScreenFinding } from './screening.ts'

/** Entries of the journal about screens. They carry categories, scores and counts, and never text. */

/** The judges have given their verdict on a request, or could not. */
export interface Screened {
  readonly kind: 'screened'
  readonly at: Instant
  readonly ticketId: string
  readonly tenantId: string
  readonly keyId: string
  readonly verdict: 'passed' | 'partial' | 'blocked'
  /** What the gateway and the judges found, with what follows from each. */
  readonly findings: readonly ScreenFinding[]
  /** Screens that could not say, and were passed over as the policy wants. */
  readonly skipped: readonly string[]
  /** Whether the turn waited for the verdict, or the first token on pools inside. */
  readonly join: 'gate' | 'overlap'
  /** Version of the tenant's policy. */
  readonly policy: string
  readonly tookUs: number
  readonly because: string
}

/** Something was found in an answer on its way out, or left out of it. */
export interface AnswerScreened {
  readonly kind: 'answer-screened'
  readonly at: Instant
  readonly ticketId: string
  readonly tenantId: string
  readonly keyId: string
  /** `partial`: there was something that a screen could not look into. `blocked`: a screen ended the answer. */
  readonly verdict: 'passed' | 'partial' | 'blocked'
  readonly findings: readonly ScreenFinding[]
  /** Screens that cannot read answers. */
  readonly skipped: readonly string[]
  /** Names of what the engine said and the client did not get. */
  readonly dropped: readonly string[]
  /** Version of the tenant's policy. */
  readonly policy: string
}

/** The guard model was asked about a request, or would have been. */
export interface GuardAnswered {
  readonly kind: 'guard-answered'
  readonly at: Instant
  /** The ticket that was judged. */
  readonly ticketId: string
  readonly tenantId: string
  readonly model: string
  readonly answer: GuardAnswer
  readonly tookUs: number
  readonly because: string
}

/** A key's requests over time look like abuse: what follows, and for how long. */
export interface AbuseNoticed {
  readonly kind: 'abuse-noticed'
  readonly at: Instant
  readonly tenantId: string
  readonly keyId: string
  readonly abuse: AbuseKind
  readonly response: AbuseResponse
  readonly count: number
  /** Length of the key's pause; 0 where it is only told. */
  readonly pauseUs: number
  readonly because: string
}

/** Passages of a corpus were judged before they went into a prompt, and something was found or could not be said. */
export interface PassagesJudged {
  readonly kind: 'passages-judged'
  readonly at: Instant
  readonly ticketId: string
  readonly tenantId: string
  readonly policy: string
  readonly findings: readonly ScreenFinding[]
  /** Passages that did not go into the prompt. */
  readonly leftOut: number
}
