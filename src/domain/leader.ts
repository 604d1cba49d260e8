/**
 * One gateway of a cell leads: it does what must be done once for all of them. It leads for a term, by a row in the
 * durable store with the database's clock. Each new term has a higher number, the *fence*. What a leader writes carries
 * its fence, and the database checks it in the same statement: a leader that was paused for longer than its term is
 * refused.
 */
export interface Fence {
  /** What is led: several things may have leaders of their own. */
  readonly name: string
  /** A gateway's id, which is new with each start. */
  readonly holder: string
  readonly number: number
}

/** The one leader of a cell: rollouts today, and what else must happen once. */
export const CELL_DUTIES = 'duties'

export type LeaseAnswer =
  | { readonly kind: 'held'; readonly fence: number }
  /** Another gateway leads, for so long yet unless it renews. */
  | { readonly kind: 'other'; readonly holder: string; readonly leftUs: number }

/** What is asked of the row of one name. */
export interface LeaseAsk {
  readonly name: string
  readonly holder: string
  readonly termUs: number
}

/** Where leaders are written. Each call is one statement. */
export interface LeaderStore {
  /** Begins a term with a new fence, where no other gateway's term runs. */
  acquire(ask: LeaseAsk): Promise<LeaseAnswer>
  /** Prolongs a running term; a term that is over is not prolonged. */
  renew(ask: LeaseAsk & { readonly fence: number }): Promise<LeaseAnswer>
  /** Ends a term early, so that the next leader need not wait. */
  release(fence: Fence): Promise<void>
}
