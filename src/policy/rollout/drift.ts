/**
 * Does a release that was good still do as well on the holdout set?
 *
 * Items with known answers are run continuously; each score is compared with the item's own baseline, taken when the
 * release was promoted. Nothing says when a change would come, so the test forgets: it is a betting CUSUM (an
 * e-detector, Shin, Ramdas and Rinaldo 2023). The gambler of `capital.ts` may start anew whenever he has less than his
 * stake; under no change he then reaches K once in at least K evaluations on the average.
 *
 * Deliberately not: it does not run the items, and it compares no releases with each other (`judge.ts` does).
 * Example: K = 10,000, an evaluation a minute: a false alarm in a week of minutes at the most. A release that now fails
 * 30 % of what it passed is noticed after about 35 evaluations.
 */
export const DRIFT_DEFAULTS = {
  /** Evaluations between false alarms, at least. */
  alarmEvery: 10_000,
  /** Scores this much lower on the average are let pass. */
  scoreMargin: 0.02,
  /** Evaluations of an item that make its baseline. */
  baselineCount: 3,
  /** Items of a holdout set. */
  itemsMax: 10_000,
}

export type DriftOptions = typeof DRIFT_DEFAULTS

const STAKES: readonly number[] = [0.8, 0.4, 0.2, 0.1]

export interface DriftVerdict {
  readonly hasDrifted: boolean
  readonly because: string
  readonly won: number
  readonly bound: number
  readonly evaluations: number
  readonly itemCount: number
}

interface Item {
  sum: number
  count: number
}

export class Drift {
  readonly #options: DriftOptions
  readonly #items = new Map<string, Item>()
  readonly #parts = new Float64Array(STAKES.length).fill(1)
  #won = 1
  #hasDrifted = false
  #evaluations = 0

  constructor(options: Partial<DriftOptions> = {}) {
    this.#options = { ...DRIFT_DEFAULTS, ...options }
  }

  /** One item was answered and scored in [0, 1]. The first few of an item make its baseline. */
  observe(itemId: string, score: number): void {
    const item = this.#itemOf(itemId)
    if (item === undefined) return
    if (item.count < this.#options.baselineCount) {
      item.sum += score
      item.count++
      return
    }
    this.#evaluations++
    const drop = item.sum / item.count - score - this.#options.scoreMargin
    let sum = 0
    for (let i = 0; i < STAKES.length; i++) {
      const y = Math.max(-1, Math.min(1, drop))
      const part = Math.min(1e200, Math.max(1, this.#parts[i] as number) * (1 + (STAKES[i] as number) * y))
      this.#parts[i] = part
      sum += part
    }
    this.#won = sum / STAKES.length
    if (this.#won >= this.#options.alarmEvery) this.#hasDrifted = true
  }

  verdict(): DriftVerdict {
    const because = this.#hasDrifted ? 'it scores less on the holdout set than it did' : 'no regression was found'
    const { alarmEvery: bound } = this.#options
    const [won, evaluations, itemCount] = [this.#won, this.#evaluations, this.#items.size]
    return { hasDrifted: this.#hasDrifted, because, won, bound, evaluations, itemCount }
  }

  #itemOf(itemId: string): Item | undefined {
    const known = this.#items.get(itemId)
    if (known !== undefined || this.#items.size >= this.#options.itemsMax) return known
    const item: Item = { sum: 0, count: 0 }
    this.#items.set(itemId, item)
    return item
  }
}
