import type { Instant } from '../../base/clock.ts'

/**
 * What was the highest number of late? A window of time over which the maximum is kept, in constant work for each number:
 * a number that a later one has reached can never be the highest again, and is dropped.
 *
 *   numbers 5 3 4 2, window of four: [5 4 2] are kept; when 5 is too old, 4 is the highest.
 *
 * Bound: NUMBERS_MAX; of more, the two oldest become one, with the higher number and the later time.
 */
const NUMBERS_MAX = 256

export class HighestLately {
  readonly #numbers: { at: Instant; value: number }[] = []

  observe(now: Instant, value: number): void {
    const numbers = this.#numbers
    while (numbers.length > 0 && (numbers[numbers.length - 1]?.value ?? 0) <= value) numbers.pop()
    numbers.push({ at: now, value })
    if (numbers.length <= NUMBERS_MAX) return
    const [first, second] = numbers
    if (first !== undefined && second !== undefined) second.value = Math.max(first.value, second.value)
    numbers.shift()
  }

  /** Undefined when there was none since then. */
  since(from: Instant): number | undefined {
    while ((this.#numbers[0]?.at ?? from) < from) this.#numbers.shift()
    return this.#numbers[0]?.value
  }
}
