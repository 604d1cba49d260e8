import { Ewma } from '../../base/ewma.ts'
import type { Load } from './ledger.ts'
import type { Limit, LimitSample, LimitView } from './limit.ts'

/**
 * How much may be in flight at a replica that tells nothing, when latency shows the queue inside it?
 *
 * Netflix's Gradient2: compare how long the first token takes now with how long it takes usually. While both agree
 * there is no queue inside the engine and the limit may grow by a small allowance; when the present is slower, the
 * limit shrinks by their ratio.
 *
 *     gradient = clamp(tolerance × usual ÷ now, 0.5, 1)
 *     limit   ← (1 − smoothing) × limit + smoothing × (gradient × limit + queueAllowance)
 *
 * `now` is the mean over a window, `usual` a mean that forgets over minutes. Time to the first token is used because
 * it does not depend on how long answers are; prompts of every length share one mean, which the window evens out.
 *
 * Deliberately not: it does not know the SLO, only "slower than usual"; a replica that is slow from the start is
 * normal to it. After a long overload `usual` has risen; when the present is less than half of it, it is pulled down.
 *
 * Laws: L2 at every grant; between 1 and `sequencesMax`.
 *
 * Worked example: limit 20, usual 200 ms, tolerance 1.5, smoothing 0.2, allowance 4. Window at 250 ms: gradient 1,
 * limit 20.8. Window at 600 ms: gradient 0.5, limit 0.8·20 + 0.2·(10 + 4) = 18.8.
 */
export const GRADIENT_LIMIT_DEFAULTS = {
  /** Sequences to start with. Netflix starts at 20; engines hold more state a request, so begin lower. */
  sequencesInitial: 16,
  sequencesMax: 256,
  /** Netflix's defaults: half as slow again is still noise; a fifth of the way each window; four may queue. */
  tolerance: 1.5,
  smoothing: 0.2,
  queueAllowance: 4,
  /** Microseconds of a window: one second has enough first tokens to average over prompt lengths. */
  windowUs: 1_000_000,
  /** Samples without which a window is not closed. */
  windowSamplesMin: 10,
  /** Microseconds over which `usual` forgets. Ten minutes, so that one busy minute is not the new normal. */
  usualMemoryUs: 600_000_000,
} as const

export interface GradientLimitOptions {
  readonly sequencesInitial: number
  readonly sequencesMax: number
  readonly tolerance: number
  readonly smoothing: number
  readonly queueAllowance: number
  readonly windowUs: number
  readonly windowSamplesMin: number
  readonly usualMemoryUs: number
}

/** What is left of `usual` in each window in which the present is less than half of it, as in Gradient2. */
const USUAL_PULL = 0.95

export class GradientLimit implements Limit {
  readonly name = 'gradient'
  readonly #options: GradientLimitOptions
  readonly #usual: Ewma
  /** What `usual` is multiplied with, after it was pulled down. */
  #pull = 1
  #limit: number
  #windowEndsAt = Number.NEGATIVE_INFINITY
  #windowSumUs = 0
  #windowCount = 0
  #windowDrops = 0
  #windowPeak = 0
  #because = 'initial'

  constructor(options: GradientLimitOptions = GRADIENT_LIMIT_DEFAULTS) {
    this.#options = options
    this.#limit = options.sequencesInitial
    this.#usual = new Ewma(options.usualMemoryUs)
  }

  isFull(load: Load): boolean {
    return load.sequences >= Math.floor(this.#limit)
  }

  fits(load: Load): boolean {
    return !this.isFull(load)
  }

  fullness(load: Load): number {
    return load.sequences / Math.floor(this.#limit)
  }

  observe(now: number, sample: LimitSample, load: Load): void {
    this.#windowPeak = Math.max(this.#windowPeak, load.sequences)
    if (sample.isDropped) this.#windowDrops++
    if (sample.firstTokenUs !== undefined) {
      this.#windowSumUs += sample.firstTokenUs
      this.#windowCount++
    }
    const { windowUs, windowSamplesMin } = this.#options
    if (now < this.#windowEndsAt || this.#windowCount + this.#windowDrops < windowSamplesMin) return
    this.#closeWindow(now)
    this.#windowEndsAt = now + windowUs
    this.#windowSumUs = 0
    this.#windowCount = 0
    this.#windowDrops = 0
    this.#windowPeak = 0
  }

  #closeWindow(now: number): void {
    const { tolerance, smoothing, queueAllowance, sequencesMax } = this.#options
    let gradient = 0.5
    if (this.#windowCount > 0) {
      const presentUs = this.#windowSumUs / this.#windowCount
      this.#usual.observe(now, presentUs / this.#pull)
      const usualUs = (this.#usual.view() ?? presentUs) * this.#pull
      if (usualUs > 2 * presentUs) this.#pull *= USUAL_PULL
      gradient = Math.max(0.5, Math.min(1, (tolerance * usualUs) / Math.max(1, presentUs)))
    }
    if (this.#windowDrops > this.#windowCount) gradient = 0.5
    // Not in use: nothing was learned about what would happen with more.
    if (gradient === 1 && this.#windowPeak * 2 < this.#limit) return
    const target = gradient * this.#limit + (gradient === 0.5 && this.#windowCount === 0 ? 0 : queueAllowance)
    const next = this.#limit * (1 - smoothing) + target * smoothing
    this.#limit = Math.max(1, Math.min(sequencesMax, next))
    this.#because = gradient < 1 ? 'first tokens take longer than usual' : 'first tokens take as long as usual'
  }

  view(): LimitView {
    return { sequencesMax: Math.floor(this.#limit), because: this.#because }
  }
}
