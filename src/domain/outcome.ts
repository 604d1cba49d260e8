/**
 * How a ticket ended. `rejected` was never queued; `expired` and `evicted` were, and lost their place; these three are
 * together called shed. `blocked`: a screen found what its tenant does not let through. Every ticket has exactly one
 * outcome (law L1).
 */
export type Outcome = 'completed' | 'rejected' | 'expired' | 'evicted' | 'cancelled' | 'blocked' | 'failed'

/** Why an answer is completed that ran a hard budget empty: it ends there, with the finish reason `length`. */
export const BUDGET_EMPTY = 'budget-empty'

/** Why a ticket is called off that a screen blocks: its outcome is `blocked`. */
export const CONTENT_FILTER = 'content-filter'

/** Whose fault a refusal is, which decides between 429 and 503. */
export type Blame = 'tenant' | 'platform' | 'request'

/**
 * Every reason for which a ticket is turned away or fails: the metric's label and, with underscores, the `code` of the
 * error body. Codes are stable, because clients and alerts name them. The gateway's error table has a row for each;
 * a code without one does not type check.
 */
export type RefusalCode =
  // Budgets of the tenant.
  | 'rate-limit-requests'
  | 'rate-limit-tokens'
  | 'concurrency-limit'
  | 'budget-exhausted'
  | 'limits-unknown'
  // An administrator's order.
  | 'tenant-paused'
  // Planning and admission.
  | 'model-not-found'
  | 'context-length-exceeded'
  | 'too-big'
  | 'deadline-infeasible'
  | 'predicted-late'
  | 'band-shed'
  | 'no-replica'
  | 'no-such-corpus'
  // Screens.
  | 'content-filter'
  | 'key-paused'
  // The queue.
  | 'unknown-pool'
  | 'expired-on-arrival'
  | 'fits-no-replica'
  | 'lane-full'
  | 'lane-work-full'
  | 'queue-full'
  | 'waited-too-long'
  | 'evicted'
  // Attempts on a replica.
  | 'replica-refused'
  | 'replica-denied'
  | 'replica-rejected-request'
  | 'replica-lost'
  | 'engine-stalled'
  | 'deadline-passed'
  // The process itself.
  | 'shutting-down'
  | 'audit-unavailable'
  | 'internal-error'

/**
 * Why something was refused, in a form that a client, a metric and a person can each use. `Code` is wider at the
 * gateway, which also refuses what never becomes a ticket: wrong keys, corpora that are away.
 */
export interface Refusal<Code extends string = RefusalCode> {
  readonly code: Code
  readonly because: string
  readonly blame: Blame
  /** When it is worth coming back; undefined when it never is. */
  readonly retryAfterUs: number | undefined
  /** Whether room is kept for who comes back then. With `none`, clients are told not to come back by themselves. */
  readonly slot?: 'given' | 'none'
  /** It came back on a slot, in time, and was refused all the same. */
  readonly isSlotBroken?: boolean
  /** Numbers behind the decision, for the error body. */
  readonly detail?: Readonly<Record<string, number | string>>
  /** The parameter at fault, where one is. */
  readonly param?: string
  /** An engine's own error, for the client alone: it may quote the prompt, so it is never journalled. */
  readonly told?: EngineError
  /** An engine's own refusal of a transit, for the client alone. */
  readonly kept?: KeptRefusal
}

/** What an engine said is wrong with a request: its HTTP status, and its error object in OpenAI's shape. */
export interface EngineError {
  readonly status: number
  readonly error: Readonly<Record<string, unknown>>
}

/** What an engine answered instead of serving a transit, as it wrote it, without credentials of ours. */
export interface KeptRefusal {
  readonly status: number
  readonly contentType: string
  readonly body: string
}
