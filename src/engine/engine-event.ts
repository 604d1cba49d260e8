import type { Instant } from '../base/clock.ts'
import type { Usage } from '../domain/delta.ts'
import type { EngineTime } from '../domain/engine-time.ts'

/** What an engine has to tell, in order of time; at one instant in order of arrival within each kind of work. */
export type EngineEvent = FirstTokenEvent | TokensEvent | FinishedEvent

/** The prompt is computed and one token is there. Once per sequence. */
export interface FirstTokenEvent {
  readonly kind: 'first-token'
  readonly at: Instant
  readonly id: string
  readonly cachedTokens: number
}

/** More tokens, for sequences that are reported every step; several at once when speculation struck lucky. */
export interface TokensEvent {
  readonly kind: 'tokens'
  readonly at: Instant
  readonly id: string
  readonly tokens: number
}

/** All tokens are there. The last event of a sequence. */
export interface FinishedEvent {
  readonly kind: 'finished'
  readonly at: Instant
  readonly id: string
  /** Tokens since the last event of this sequence. */
  readonly tokens: number
  readonly arrivedAt: Instant
  readonly firstTokenAt: Instant
  readonly usage: Usage
  readonly preemptions: number
  /** Its share of the engine's time; absent from engines that answer in batches. */
  readonly time?: EngineTime
}

/** What an aborted sequence had come to. */
export interface Abortion {
  readonly id: string
  /** Tokens since the last event of this sequence. */
  readonly tokens: number
  readonly usage: Usage
  readonly preemptions: number
  readonly time: EngineTime
}
