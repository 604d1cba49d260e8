/**
 * How a ticket ended. `rejected` was never queued; `expired` and `evicted` were, and lost their place; these three are
 * together called shed. Every ticket has exactly one (law L1).
 */
export type Outcome = 'completed' | 'rejected' | 'expired' | 'evicted' | 'cancelled' | 'blocked' | 'failed'

/** Whose fault a refusal is, which decides between 429 and 503. */
export type Blame = 'tenant' | 'platform' | 'request'

/** Why something was refused, in a form that a client, a metric and a person can each use. */
export interface Refusal {
  /** Low-cardinality, kebab-case: also the metric label and the `code` in the error body. */
  readonly code: string
  readonly because: string
  readonly blame: Blame
  /** When it is worth coming back; undefined when it never is. */
  readonly retryAfterUs: number | undefined
  /** Numbers behind the decision, for the error body. */
  readonly detail?: Readonly<Record<string, number | string>>
  /** The parameter at fault, where one is. */
  readonly param?: string
  /** An engine's own words, for the client alone: they may quote its prompt, so they are never journalled. */
  readonly said?: string
}
