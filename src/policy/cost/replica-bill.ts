import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'

/**
 * What has a replica cost up to here? Dollars by the hour, counted from the instant at which it is there (its cold start
 * included) to the one at which it is released, in whole nano-dollars. A second's bill is the difference of two rounded
 * totals, so the bills of all seconds add up to the bill of the whole, whatever the rate.
 *
 * Example: $3 an hour are 833,333.3… nano-dollars a second: 833,333, 833,333, 833,334, and so on.
 */
const US_PER_HOUR = 3_600_000_000n

export const nanoPerHourOf = (usdPerHour: number): number => Math.round(usdPerHour * 1e9)

/** ⌊rate · t⌋ */
export function billUpTo(nanoPerHour: number, elapsedUs: number): bigint {
  return (BigInt(nanoPerHour) * BigInt(elapsedUs)) / US_PER_HOUR
}

export class ReplicaBill {
  readonly since: Instant
  readonly nanoPerHour: number
  #closedUntil: Instant
  #closedNano: bigint

  /** `closedUntil`: another owner has closed it up to there. */
  constructor(since: Instant, nanoPerHour: number, closedUntil: Instant = since) {
    assert(Number.isSafeInteger(nanoPerHour) && nanoPerHour >= 0, 'a rate is whole nano-dollars an hour')
    this.since = since
    this.nanoPerHour = nanoPerHour
    this.#closedUntil = closedUntil
    this.#closedNano = billUpTo(nanoPerHour, closedUntil - since)
  }

  get closedUntil(): Instant {
    return this.#closedUntil
  }

  /** The bill from the last closing to here. */
  close(until: Instant): number {
    assert(until >= this.#closedUntil, 'a bill is closed in order')
    const nano = billUpTo(this.nanoPerHour, until - this.since)
    const billNano = Number(nano - this.#closedNano)
    this.#closedUntil = until
    this.#closedNano = nano
    return billNano
  }
}
