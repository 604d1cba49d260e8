import type { Instant } from '../base/clock.ts'
import type { AnswerDifference } from './entry.ts'
import type { Outcome } from './outcome.ts'

/**
 * The two answers to one request that was shown to a second release: the client's and the shadow's. Kept only for
 * tenants whose storing terms allow it, screened and cut. No entry of the journal has one.
 */
export interface OutputPair {
  readonly at: Instant
  readonly ticketId: string
  readonly model: string
  readonly tenantId: string
  readonly orgId: string
  readonly primary: KeptOutput
  readonly shadow: KeptOutput & { readonly outcome: Outcome }
  /** Absent when the shadow's answer is incomplete. */
  readonly difference?: OutputDifference
}

export interface KeptOutput {
  readonly releaseId: string
  /** The beginning of the answer's first choice, without personal data of a known form and without secrets. */
  readonly text: string
  /** Characters of the answer, as far as it was read: more than `text` has when that was cut. */
  readonly length: number
  /** Null where the answer has no end. */
  readonly finishReason: string | null
}

export interface OutputDifference extends AnswerDifference {
  readonly isSameFinish: boolean
  /** Character of the two kept texts at which they begin to differ; absent when they do not. */
  readonly firstAt?: number
  /** Whether each answer is JSON; absent where the client asked for no structured output. */
  readonly isJson?: { readonly primary: boolean; readonly shadow: boolean }
}

/** Whose pairs are asked for, and how many, the newest first. */
export interface OutputAsk {
  readonly model: string | undefined
  readonly tenantId: string | undefined
  readonly limit: number
}
