/**
 * What does a typical turn cost? A running median in one number: each sample moves it one step up or down (the
 * frugal estimator of Ma, Muthukrishnan and Sandler, 2013, with a relative step). It needs no window, survives
 * outliers, and uses only multiplication and division, which are the same bit for bit on every processor.
 *
 * What is told stays the same until the median has moved away by half. It is the unit of every quantum: if it danced with
 * the last few turns, who has dear ones would always be credited right after them, in dearer rounds than the others (4 %
 * more work for turns of twenty times the cost, for ever).
 *
 * Worked example: at 1,000, samples 3,000 and 3,500 move it to 1,020 and 1,040.4; a sample of 10 moves it back to
 * 1,020; 1,000 is told all the time. A load that doubles its size is followed after 21 samples (1.02^21 = 1.52).
 */
export class MedianCost {
  #median = 0
  #told = COST_BEFORE_SAMPLES

  get value(): number {
    return this.#told
  }

  observe(cost: number): void {
    if (!(cost > 0)) return
    if (this.#median === 0) {
      this.#median = cost
      this.#told = cost
    } else if (cost > this.#median) this.#median = Math.min(cost, this.#median * STEP)
    else if (cost < this.#median) this.#median = Math.max(cost, this.#median / STEP)
    if (this.#median > this.#told * AWAY || this.#median * AWAY < this.#told) this.#told = this.#median
  }
}

/** Two per cent a sample: follows a change of load within a hundred turns, and does not dance with single ones. */
const STEP = 1.02

/** How far the median may be from what is told. A round that is half too long or too short is still about a turn each. */
const AWAY = 1.5

/** Weighted tokens. Only the very first turn of a pool sees it; a chat turn of 500 in and 125 out at 4 a token. */
const COST_BEFORE_SAMPLES = 1_000
