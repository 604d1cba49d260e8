/** The figures behind `held-room.ts`, which has the rule and an example. */
export const HELD_ROOM_DEFAULTS = {
  /** Times of the tightest promise of another tenant from which room is taken for long: an ordinary chat ends before. */
  promiseTimes: 6,
  /** Of the number of requests that a tenant has at once, which varies as arrivals do: two, so that 97 of 100 find room. */
  deviations: 2,
  /** Microseconds over which arrivals and endings are forgotten: a burst shows, and a second without is no silence. */
  memoryUs: 4_000_000,
  /** Microseconds over which it is forgotten how much a tenant needed at most: as long as long answers last. */
  peakMemoryUs: 120_000_000,
  /** Of the promise, the time in which what comes back still helps: the rest is for the engine. */
  helpfulRatio: 0.5,
  /** Microseconds after which a barred lane is asked again: other tenants may have gone, or replicas come. */
  recheckUs: 250_000,
} as const

/** A rate that forgets, as a quotient (`base/ewma.ts` says why). */
class FadingRate {
  #perUs = 0
  #at = 0

  add(now: number, amount: number): void {
    this.#perUs = this.perUs(now) + amount / HELD_ROOM_DEFAULTS.memoryUs
    this.#at = now
  }

  perUs(now: number): number {
    const { memoryUs } = HELD_ROOM_DEFAULTS
    return (this.#perUs * memoryUs) / (memoryUs + Math.max(0, now - this.#at))
  }
}

/** What one tenant holds and needs of a pool's room. */
export class TenantRoom {
  heldCount = 0
  /** Exactly 0 when nothing is held. */
  heldRatio = 0
  /** Tokens of the longest answer that ended and had outgrown its prediction; 0 while none has. */
  longestTokens = 0
  readonly #needed = new FadingRate()
  readonly #squares = new FadingRate()
  #peakRatio = 0
  #peakAt = 0
  readonly #ended = new FadingRate()
  readonly #returned = new FadingRate()

  claim(now: number, ratio: number, lastsUs: number): void {
    this.#needed.add(now, ratio * lastsUs)
    this.#squares.add(now, ratio * ratio * lastsUs)
    const peakRatio = Math.max(this.needRatio(now), this.peakRatio(now))
    this.#peakRatio = peakRatio
    this.#peakAt = now
  }

  /** The most that it needed lately: engines that fill up write slower, and the same requests need more room. */
  peakRatio(now: number): number {
    const { peakMemoryUs } = HELD_ROOM_DEFAULTS
    return (this.#peakRatio * peakMemoryUs) / (peakMemoryUs + Math.max(0, now - this.#peakAt))
  }

  move(ratio: number, sign: 1 | -1): void {
    this.heldCount += sign
    this.heldRatio = this.heldCount === 0 ? 0 : Math.max(0, this.heldRatio + sign * ratio)
  }

  end(now: number, ratio: number): void {
    this.#ended.add(now, 1)
    this.#returned.add(now, ratio)
  }

  /** Part of the room that the tenant gives back in a microsecond. */
  returnedPerUs(now: number): number {
    return this.#returned.perUs(now)
  }

  needRatio(now: number): number {
    return this.#needed.perUs(now) + HELD_ROOM_DEFAULTS.deviations * Math.sqrt(this.#squares.perUs(now))
  }

  /** By what runs and what ends; 0 while too little runs to tell. */
  lastsUs(now: number): number {
    return this.heldCount < COUNT_MIN ? 0 : this.heldCount / Math.max(1e-9, this.#ended.perUs(now))
  }
}

/** Turns at once of which it is worth saying how long they last. */
const COUNT_MIN = 8
