import type { LeaseAnswer } from '../../domain/leader.ts'

/**
 * Does this gateway lead, and when does it ask again?
 *
 * The leader's row in the database is the truth (`domain/leader.ts`); this is what one gateway may believe of it between
 * two questions. A term of the database begins when the question arrives there, which is after it was sent. So a gateway
 * that counts its term from the sending, and `marginUs` less, has stopped to believe in it before the database gives the
 * row away, whatever the network does. A gateway that was paused sees on its own clock that its term is over, and
 * decides nothing; what it had decided before the pause is refused by the database, which checks the fence.
 *
 *   follower ─acquire: held─▶ leader ─renew each renewUs─▶ leader
 *      ▲                        │ term over, refused, or an effect was refused
 *      └────────────────────────┘
 *
 * A follower asks again when the leader's term would end, and each `retryUs` at the latest. Without an answer for a
 * whole term nobody is known to lead: the store may be away.
 *
 * Deliberately not: no clocks of two machines are compared; nothing is written here.
 * Example: term 6 s, margin 1 s, asked at 10.0 s, answered at 10.8 s: it leads until 15.0 s and renews at 12.0 s. The
 * database gives the row away at 16.0 s at the earliest.
 */
export const TERM_DEFAULTS = {
  /** A leader that dies is followed within this time. */
  termUs: 6_000_000,
  /** Three questions in a term: one may be lost. */
  renewUs: 2_000_000,
  /** Clocks differ by parts in ten thousand over a term; a pause between the look at the clock and a write is longer. */
  marginUs: 1_000_000,
  retryUs: 2_000_000,
  /** An answer that takes longer is none. */
  answerUsMax: 2_000_000,
}

export type TermOptions = typeof TERM_DEFAULTS

export type TermQuestion = { readonly kind: 'acquire' } | { readonly kind: 'renew'; readonly fence: number }

export type TermView =
  | { readonly kind: 'leads'; readonly fence: number }
  | { readonly kind: 'follows'; readonly holder: string }
  | { readonly kind: 'unknown' }

export class LeaseTerm {
  readonly #options: TermOptions
  #fence: number | undefined
  /** Until when this gateway believes that it leads. */
  #untilAt = Number.NEGATIVE_INFINITY
  #askedAt: number | undefined
  #nextAt = Number.NEGATIVE_INFINITY
  /** The leader that was heard of last, and until when that is believed. */
  #other: { readonly holder: string; readonly untilAt: number } | undefined

  constructor(options: Partial<TermOptions> = {}) {
    this.#options = { ...TERM_DEFAULTS, ...options }
  }

  get termUs(): number {
    return this.#options.termUs
  }

  get answerUsMax(): number {
    return this.#options.answerUsMax
  }

  /** When to ask next; undefined while a question is under way. */
  nextAt(): number | undefined {
    return this.#askedAt === undefined ? this.#nextAt : undefined
  }

  /** Begins a question; `answered` must follow. */
  ask(now: number): TermQuestion {
    this.#askedAt = now
    const fence = this.#fenceAt(now)
    // A term that is over is never prolonged: others may have acted since.
    if (fence === undefined) this.#fence = undefined
    return fence === undefined ? { kind: 'acquire' } : { kind: 'renew', fence }
  }

  /** The store's answer; undefined when there was none in time. */
  answered(now: number, answer: LeaseAnswer | undefined): void {
    const { termUs, renewUs, marginUs, retryUs } = this.#options
    const askedAt = this.#askedAt ?? now
    this.#askedAt = undefined
    if (answer === undefined) {
      this.#nextAt = now + retryUs / 2
      return
    }
    if (answer.kind === 'held') {
      this.#fence = answer.fence
      this.#untilAt = askedAt + termUs - marginUs
      this.#other = undefined
      this.#nextAt = Math.max(now, askedAt + renewUs)
      return
    }
    this.#fence = undefined
    const leftUs = Math.min(termUs, Math.max(0, answer.leftUs))
    this.#other = { holder: answer.holder, untilAt: now + leftUs + retryUs }
    this.#nextAt = now + Math.min(retryUs, leftUs)
  }

  /** The database refused what this leader wrote: the term is over, whatever this clock says. */
  depose(now: number): void {
    this.#fence = undefined
    this.#nextAt = now
  }

  /** Somebody may have given up the lead: ask now. */
  hurry(now: number): void {
    if (this.#fenceAt(now) === undefined) this.#nextAt = now
  }

  viewAt(now: number): TermView {
    const fence = this.#fenceAt(now)
    if (fence !== undefined) return { kind: 'leads', fence }
    return this.#other === undefined || now >= this.#other.untilAt
      ? { kind: 'unknown' }
      : { kind: 'follows', holder: this.#other.holder }
  }

  #fenceAt(now: number): number | undefined {
    return now < this.#untilAt ? this.#fence : undefined
  }
}
