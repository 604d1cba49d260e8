import type { Instant } from './clock.ts'
import { msToUs, secondsToUs } from './clock.ts'

/**
 * A circuit breaker (Nygard, "Release It!"): after a few failures in a row a part is not called for a while, so that a
 * broken part costs nothing instead of the whole budget of every request. Then one call is let through as a probe
 * (half-open). If it succeeds the breaker closes; if not the pause doubles, up to a bound that keeps recovery within
 * seconds.
 *
 *   closed ── FAILURES_MAX in a row ──▶ open ── pause over ──▶ one probe ── ok ──▶ closed
 *                                        ▲────────── failed: pause × 2 ──┘
 *
 * A meter: it knows no clock and does not ask anything itself. Whoever was allowed tells how it ended, exactly once.
 */
const FAILURES_MAX = 3
const PAUSE_US_MIN = msToUs(500)
/** Longest pause: a part that comes back is in use again within five seconds. */
const PAUSE_US_MAX = secondsToUs(4)
/** A probe without a result is forgotten after this time. */
const PROBE_US_MAX = secondsToUs(4)

export type BreakerState = 'closed' | 'open'

export class Breaker {
  readonly #onChange: (state: BreakerState, now: Instant, because: string | undefined) => void
  #failures = 0
  #openUntil: Instant | undefined
  #pauseUs = PAUSE_US_MIN
  #probeUntil: Instant | undefined

  constructor(onChange: (state: BreakerState, now: Instant, because: string | undefined) => void = () => {}) {
    this.#onChange = onChange
  }

  get state(): BreakerState {
    return this.#openUntil === undefined ? 'closed' : 'open'
  }

  mayTry(now: Instant): boolean {
    if (this.#openUntil === undefined) return true
    if (now < this.#openUntil) return false
    if (this.#probeUntil !== undefined && now < this.#probeUntil) return false
    this.#probeUntil = now + PROBE_US_MAX
    return true
  }

  succeeded(now: Instant): void {
    this.#failures = 0
    this.#pauseUs = PAUSE_US_MIN
    this.#probeUntil = undefined
    if (this.#openUntil === undefined) return
    this.#openUntil = undefined
    this.#onChange('closed', now, undefined)
  }

  /** `because` is for operators: it may name addresses. */
  failed(now: Instant, because?: string): void {
    this.#failures++
    const wasOpen = this.#openUntil !== undefined
    if (!wasOpen && this.#failures < FAILURES_MAX) return
    // Results of calls from before the breaker opened tell nothing new.
    if (wasOpen && this.#probeUntil === undefined) return
    if (wasOpen) this.#pauseUs = Math.min(PAUSE_US_MAX, this.#pauseUs * 2)
    this.#probeUntil = undefined
    this.#openUntil = now + this.#pauseUs
    if (!wasOpen) this.#onChange('open', now, because)
  }
}
