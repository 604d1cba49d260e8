import type { Estimate } from '../../domain/plan.ts'
import { prefillTokensOf } from '../limits/ledger.ts'

/**
 * How much of the time may a tenant's long prompts take?
 *
 * An engine reads a prompt in one go, step after step, and nothing that comes later begins before it is read: a prompt of
 * 30,000 tokens holds a replica for a second. No order of turns mends that, for the others are not waiting when it is
 * granted. So room is left for them before they come. Two rules:
 *
 *   - At a replica, at most one prompt that is longer than a step (`Reading.stepTokens`) is being read at a time
 *     (`ReplicaRoom.fits`).
 *   - At a pool, a tenant's *hindering* prompts get at most its share of the replicas' time. A prompt hinders when it
 *     takes more than `promiseRatio` of the time that another active tenant is promised its first token in: shorter ones
 *     delay nobody noticeably, and keep the pool's whole room.
 *
 * The share is the tenant's among the active (`fairness/tree-share.ts`): those with a ticket of an interactive or standard band that waits or
 * runs, or that came within the time of its own promise. The tenant earns share × ready replicas microseconds of reading
 * per microsecond, saves nothing, and spends one for each prompt that is being read. A tenant is *barred*, and its lane
 * leaves the order,
 *
 *   - while as many of its prompts are being read as its share has replicas, rounded up;
 *   - while it is in debt, unless another replica stays free of hindering prompts: the part of a replica that rounding
 *     adds is given where it costs no other tenant its last place. A debt is never more than the last prompt took.
 *
 * A lane that is barred is owed nothing: it takes its place as one that comes back from idling. A tenant that is alone
 * has no prompt that hinders, and is never barred.
 *
 * Deliberately not: no interruption of a prompt that is being read; no look past a barred head into its own lane;
 * nothing where the engine's speed is unknown.
 *
 * Laws: L6 as amended. No starvation: a bar ends by itself, when the debt is paid or when one of the tenant's own prompts
 * has been read.
 *
 * Worked example: three active tenants of equal weight, prompts of 900 ms. Two replicas: 2 ÷ 3 of a microsecond per
 * microsecond, rounded up to one replica: one such prompt after the other at one replica at a time, and the other replica
 * is there for everybody. One replica: a third; a prompt leaves a debt of 600 ms, paid 1,800 ms later.
 */
export const LONG_PROMPT_DEFAULTS = {
  /** Of the tightest promise of an active tenant: a quarter, since its own prompt and its queue need the rest. */
  promiseRatio: 0.25,
} as const

/** How a replica reads prompts. */
export interface Reading {
  /** Tokens of one step: a longer prompt takes several steps to itself. */
  readonly stepTokens: number
  /** Microseconds that a prompt of this many uncached tokens takes alone. */
  readonly readUs: (tokens: number) => number
}

/** Reading time that one tenant has had at one pool. */
export class ReadingTime {
  /** Hindering prompts that are being read. */
  readingCount = 0
  /** Microseconds, 0 or less: what was read beyond the share. */
  #creditUs = 0
  #asOf = 0

  start(now: number, earned: number): void {
    this.debtUs(now, earned)
    this.readingCount++
  }

  /** A prompt was read, or given up, after this many microseconds. */
  end(now: number, earned: number, tookUs: number): void {
    this.debtUs(now, earned)
    this.#creditUs = Math.max(this.#creditUs, -tookUs)
    this.readingCount--
  }

  /** Brings the account up to now, at this many microseconds earned per microsecond. */
  debtUs(now: number, earned: number): number {
    this.#creditUs = Math.min(0, this.#creditUs + (earned - this.readingCount) * (now - this.#asOf))
    this.#asOf = now
    return 0 - this.#creditUs
  }

  /**
   * Until when the tenant is barred; undefined when it is not. Infinity: until one of its prompts has been read, since
   * its debt does not shrink before. `isLastFree`: no other replica would be free of hindering prompts.
   */
  barredUntil(now: number, earned: number, isLastFree: boolean): number | undefined {
    const debtUs = this.debtUs(now, earned)
    if (this.readingCount >= Math.ceil(earned)) return Number.POSITIVE_INFINITY
    // Less than a microsecond is rounding.
    if (debtUs < 1 || !isLastFree) return undefined
    const perUs = earned - this.readingCount
    return perUs <= 0 ? Number.POSITIVE_INFINITY : now + Math.ceil(debtUs / perUs)
  }
}

/** Whether the uncached part of the prompt takes more than one step. */
export function isLongFor(reading: Reading | undefined, estimate: Estimate): boolean {
  return reading !== undefined && prefillTokensOf(estimate) > reading.stepTokens
}
