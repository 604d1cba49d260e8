import type { Instant } from '../../base/clock.ts'

/**
 * Of the tickets that were admitted between two instants, by how much was the closest in time?
 *
 * The least slack of each tenth of a second is kept, for as long as the window. Tickets that were late do not count: no
 * further delay makes them so. A ticket is found by when it was admitted, not by when its first token came.
 *
 * Example: admitted at 1.00 s with 80 ms left, at 1.25 s with 20 ms: between 0.9 s and 1.1 s the least is 80 ms.
 */
const BUCKET_US = 100_000

export class SlackWindow {
  readonly #leastUs: Float64Array
  /** Which tenth of a second each bucket holds. */
  readonly #numbers: Float64Array

  constructor(windowUs: number) {
    const count = Math.ceil(windowUs / BUCKET_US) + 2
    this.#leastUs = new Float64Array(count)
    this.#numbers = new Float64Array(count).fill(-1)
  }

  observe(admittedAt: Instant, slackUs: number): void {
    if (slackUs < 0) return
    const number = Math.floor(admittedAt / BUCKET_US)
    const index = number % this.#leastUs.length
    const held = this.#numbers[index] as number
    if (held > number) return
    this.#leastUs[index] = held === number ? Math.min(this.#leastUs[index] as number, slackUs) : slackUs
    this.#numbers[index] = number
  }

  /** Infinity where nothing was admitted. */
  least(fromAt: Instant, toAt: Instant): number {
    const to = Math.floor(toAt / BUCKET_US)
    const from = Math.max(Math.floor(fromAt / BUCKET_US), to - this.#leastUs.length + 1)
    let least = Number.POSITIVE_INFINITY
    for (let number = from; number <= to; number++) {
      const index = number % this.#leastUs.length
      if (this.#numbers[index] === number) least = Math.min(least, this.#leastUs[index] as number)
    }
    return least
  }
}
