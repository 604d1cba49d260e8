/**
 * What does a typical turn cost? A running median in one number: each sample moves it one step up or down (the
 * frugal estimator of Ma, Muthukrishnan and Sandler, 2013, with a relative step). It needs no window, survives
 * outliers, and uses only multiplication and division, which are the same bit for bit on every processor.
 *
 * Worked example: at 1,000, samples 3,000 and 3,500 move it to 1,020 and 1,040.4; a sample of 10 moves it back to
 * 1,020. A load that doubles its size is followed after 36 samples (1.02^36 = 2.04).
 */
export class MedianCost {
  #value = 0

  get value(): number {
    return this.#value > 0 ? this.#value : COST_BEFORE_SAMPLES
  }

  observe(cost: number): void {
    if (!(cost > 0)) return
    if (this.#value === 0) this.#value = cost
    else if (cost > this.#value) this.#value = Math.min(cost, this.#value * STEP)
    else if (cost < this.#value) this.#value = Math.max(cost, this.#value / STEP)
  }
}

/** Two per cent a sample: follows a change of load within a hundred turns, and does not dance with single ones. */
const STEP = 1.02

/** Weighted tokens. Only the very first turn of a pool sees it; a chat turn of 500 in and 125 out at 4 a token. */
const COST_BEFORE_SAMPLES = 1_000
