/**
 * When is it worth coming back?
 *
 * As fair sharing works its own lane off, a tenant's predicted wait falls by one second each second, as long as nobody
 * else joins: the last ticket of the lane has a fixed place in the schedule, and a newcomer stands behind it. So a
 * request that would now wait T and could afford to wait A is admitted T − A from now: the projected drain of that
 * tenant's own lane, not of the whole platform. The prediction was stretched by the calibrated bias, and so is this.
 *
 * Jitter spreads those who were refused together; it only ever adds, because coming early means being refused again.
 * The number comes from outside (0 … 1): policies have no randomness of their own.
 *
 * It does not promise a place: who comes back competes again, and a burst of others may have come first. It does not
 * round or cap either; that is the wire's business (whole seconds, 60 at most).
 *
 * Example: predicted 5.2 s, affordable 2 s: 3.2 s, and with jitter 0.5 another tenth: 3.52 s.
 */
export const RETRY_AFTER_DEFAULTS = {
  /** At most this share of the wait is added: enough to spread a herd, little enough to stay truthful. */
  jitterRatio: 0.2,
  /** A herd that is told "almost at once" must be spread too: at least this much times the jitter number. */
  jitterUsMin: 250_000,
  /** Sooner than this nothing has changed: about one engine step. */
  retryAfterUsMin: 20_000,
}

export interface RetryQuestion {
  /** When it would be done, from now, as admission predicted it. */
  readonly predictedUs: number
  /** When it would have to be done, from now, for a request that came with the same patience. */
  readonly affordableUs: number
  /** 0 … 1, from a random stream outside. */
  readonly jitter: number
}

export function retryAfterUs(question: RetryQuestion): number | undefined {
  const lateUs = question.predictedUs - question.affordableUs
  if (!Number.isFinite(lateUs)) return undefined
  const { jitterRatio, jitterUsMin, retryAfterUsMin } = RETRY_AFTER_DEFAULTS
  const neededUs = Math.max(retryAfterUsMin, lateUs)
  return Math.ceil(neededUs + question.jitter * Math.max(jitterUsMin, jitterRatio * neededUs))
}
