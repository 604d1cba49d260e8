import type { RequestKind } from '../../domain/request.ts'

/**
 * Do this pool's engines deny us, whatever we ask?
 *
 * A wrong key, a wrong address or a used-up quota is mended by a person, not by time. A pool that was denied `inRowMax`
 * times in a row is not asked again, and admission refuses what would go there at once. Only an attempt can find out that
 * the pool was mended, so one request is let in as a trial, after `trialUs` and then after twice as long each time.
 *
 * Kinds of requests are counted apart: an engine that has no embeddings answers 404 to them and chats all the same.
 *
 * Deliberately not: no look at single replicas, which health keeps; the caller asks whether one of them still answers.
 *
 * Laws: none. Bound: one record for each kind of request.
 *
 * Worked example: five chats are answered 401. For 10 s every chat is refused at once; then one goes there, is answered
 * 401, and for 20 s all are refused; the next trial is answered 200, and from then on nothing is refused.
 */
export const POOL_DENIAL_DEFAULTS = {
  /** In a row, without an answer in between. Five, as for the failures of a replica. */
  inRowMax: 5,
  /** Microseconds to the first trial, doubled with every trial that is denied. */
  trialUs: 10_000_000,
  /** A person who has mended the pool waits for a minute at most. */
  trialUsMax: 60_000_000,
} as const

interface KindDenial {
  inRow: number
  because: string
  /** When the next trial is let in; meaningful from `inRowMax` on. */
  trialAt: number
  trialUs: number
  /** A trial is under way. Attempts that began before the pool was closed say nothing new. */
  isTrial: boolean
}

export class PoolDenial {
  readonly #kinds = new Map<RequestKind, KindDenial>()

  /** An attempt was denied (a reason), or answered (undefined). */
  observe(now: number, kind: RequestKind, because: string | undefined): void {
    if (because === undefined) {
      this.#kinds.delete(kind)
      return
    }
    const { inRowMax, trialUs, trialUsMax } = POOL_DENIAL_DEFAULTS
    const known = this.#kinds.get(kind) ?? { inRow: 0, because, trialAt: 0, trialUs, isTrial: false }
    known.inRow++
    known.because = because
    if (known.inRow === inRowMax) known.trialAt = now + known.trialUs
    else if (known.isTrial) {
      known.trialUs = Math.min(trialUsMax, 2 * known.trialUs)
      known.trialAt = now + known.trialUs
    }
    known.isTrial = false
    this.#kinds.set(kind, known)
  }

  /** Why nothing of this kind may go to the pool now; undefined when it may, if only as a trial. */
  because(now: number, kind: RequestKind): string | undefined {
    const known = this.#kinds.get(kind)
    if (known === undefined || known.inRow < POOL_DENIAL_DEFAULTS.inRowMax || now >= known.trialAt) return undefined
    return known.because
  }

  /** A request of this kind goes to the pool: where it is a trial, the next one has to wait. */
  admitted(now: number, kind: RequestKind): void {
    const known = this.#kinds.get(kind)
    if (known === undefined || known.inRow < POOL_DENIAL_DEFAULTS.inRowMax || now < known.trialAt) return
    known.trialAt = now + known.trialUs
    known.isTrial = true
  }
}
