/**
 * Which item of the holdout set is asked next, and how good was the answer?
 *
 * Questions with known answers, asked one after the other, round and round, at a steady rate; so a release is measured on
 * the same items again and again, and the stable one and a canary on the same item at the same time. An answer scores 1
 * when it contains what was expected (letter case and spacing aside) or matches the pattern, else 0.
 *
 * Behind by more than a few questions it catches up with none of them: the rate is a bound, not a debt.
 *
 * Deliberately not: no judge by another model, no partial marks; what compares scores is `judge.ts` and `drift.ts`.
 * Example: 6 a minute, 30 items: each item every five minutes.
 */
export const HOLDOUT_DEFAULTS = {
  perMinute: 6,
  /** Questions under way at once, each with a ticket per release. */
  inFlightMax: 2,
  outputTokensMax: 64,
}

export interface HoldoutItem {
  readonly id: string
  readonly prompt: string
  readonly expected?: string
  /** A regular expression, without flags but `i`. */
  readonly pattern?: string
}

export interface HoldoutOptions {
  readonly perMinute: number
  readonly inFlightMax: number
  readonly outputTokensMax: number
}

export class Holdout {
  readonly options: HoldoutOptions
  readonly #items: readonly HoldoutItem[]
  readonly #patterns = new Map<string, RegExp>()
  readonly #gapUs: number
  #next = 0
  #dueAt: number | undefined
  #inFlight = 0

  constructor(items: readonly HoldoutItem[], options: HoldoutOptions = HOLDOUT_DEFAULTS) {
    this.#items = items
    this.options = options
    this.#gapUs = 60_000_000 / options.perMinute
    for (const { id, pattern } of items) if (pattern !== undefined) this.#patterns.set(id, new RegExp(pattern, 'i'))
  }

  /** Questions so far: the same item may be under way twice. */
  get askedCount(): number {
    return this.#next
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** The item to ask now; `ended` must follow. Undefined when none is due, or enough are under way. */
  begin(now: number): HoldoutItem | undefined {
    this.#dueAt ??= now
    if (this.#items.length === 0 || now < this.#dueAt || this.#inFlight >= this.options.inFlightMax) return undefined
    this.#dueAt = Math.max(this.#dueAt + this.#gapUs, now - this.#gapUs)
    this.#inFlight++
    return this.#items[this.#next++ % this.#items.length]
  }

  ended(): void {
    this.#inFlight--
  }

  score({ id, expected }: HoldoutItem, answer: string): number {
    const pattern = this.#patterns.get(id)
    if (pattern !== undefined) return Number(pattern.test(answer))
    return Number(expected !== undefined && plain(answer).includes(plain(expected)))
  }
}

const plain = (text: string): string => text.toLowerCase().replace(/\s+/g, ' ').trim()
