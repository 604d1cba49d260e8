import type { Instant } from '../../base/clock.ts'

/**
 * What are the habits of one lane, and when may its next slot be?
 *
 * Slots of one lane lie as far apart as the lane is served: who has one turn in a second and tells two clients the same
 * time breaks one of the two slots, however much room there is. With 25 alike tenants more than half of the broken slots
 * were such.
 *
 * Whether clients come back is a habit, too. A lane that has none yet is taken for like all others: with many tenants each
 * has a slot every few seconds, and a minute of overload would be over before each of them is believed on its own.
 *
 * Example: a lane that is served 1,500 weighted tokens a second has a slot of 1,200 due at 10 s. Its next is due at 10.8 s
 * or later.
 */
export interface ReturnLaneOptions {
  readonly memory: number
  readonly paceMemoryUs: number
}

export class ReturnLane {
  readonly #options: ReturnLaneOptions
  claimCount = 0
  usualCost: number
  /** Undefined until the first of its slots is over. */
  shows: ShowRatio | undefined = undefined
  #lastDueAt: Instant = 0
  #lastCost = 0
  #servedPerUs = 0
  #servedAt: Instant = 0

  constructor(options: ReturnLaneOptions, usualCost: number) {
    this.#options = options
    this.usualCost = usualCost
  }

  admitted(now: Instant, cost: number): void {
    this.usualCost += this.#options.memory * (cost - this.usualCost)
    this.#servedPerUs = this.#perUs(now) + cost / this.#options.paceMemoryUs
    this.#servedAt = Math.max(this.#servedAt, now)
  }

  claimed({ dueAt, cost }: { readonly dueAt: Instant; readonly cost: number }): void {
    this.claimCount++
    this.#lastDueAt = dueAt
    this.#lastCost = cost
  }

  /** The soonest time for one more. A lane of which nothing was ever admitted has no pace; one without claims is free. */
  nextDueAt(now: Instant): Instant {
    if (this.claimCount === 0) return 0
    const perUs = this.#perUs(now)
    return perUs === 0 ? this.#lastDueAt : this.#lastDueAt + this.#lastCost / perUs
  }

  /** As in `base/ewma.ts`, a quotient. */
  #perUs(now: Instant): number {
    const { paceMemoryUs } = this.#options
    return (this.#servedPerUs * paceMemoryUs) / (paceMemoryUs + Math.max(0, now - this.#servedAt))
  }
}

/** Of those who had a slot, how many came? What was believed before is worth `FIRST_COUNT` of them. */
export class ShowRatio {
  readonly #memory: number
  #came: number
  #ended = FIRST_COUNT

  constructor(memory: number, firstRatio: number) {
    this.#memory = memory
    this.#came = FIRST_COUNT * firstRatio
  }

  get ratio(): number {
    return this.#came / this.#ended
  }

  observe(hasCome: boolean): void {
    const kept = 1 - this.#memory
    this.#came = kept * this.#came + (hasCome ? 1 : 0)
    this.#ended = kept * this.#ended + 1
  }
}

const FIRST_COUNT = 4
