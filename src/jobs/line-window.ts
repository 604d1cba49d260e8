import { type Instant, msToUs } from '../base/clock.ts'

/**
 * How many lines of one tenant run at once? As many as are not refused: each answer makes room for one more, a refusal
 * halves the room, and further ones of the same moment count with it (additive increase, multiplicative decrease:
 * Chiu and Jain, 1989). The dispatcher decides who goes; this only keeps the tenant's lanes from being filled with lines
 * that would wait there for nothing.
 */
const FIRST = 16
/** Refusals that come together have one cause. */
const MOMENT_US = msToUs(250)

export class LineWindow {
  readonly #max: number
  #size: number
  #halvedAt: Instant = Number.NEGATIVE_INFINITY
  running = 0

  constructor(max: number) {
    this.#max = max
    this.#size = Math.min(FIRST, max)
  }

  /** Lines that may begin now; `share` is what this tenant may have of the whole. */
  room(share: number): number {
    return Math.max(0, Math.floor(Math.min(this.#size, share)) - this.running)
  }

  /** Few enough run that it is worth asking the store for more. */
  isLow(share: number): boolean {
    return this.running <= Math.min(this.#size, share) / 2
  }

  answered(): void {
    this.#size = Math.min(this.#max, this.#size + 1)
  }

  refused(now: Instant): void {
    if (now - this.#halvedAt < MOMENT_US) return
    this.#halvedAt = now
    this.#size = Math.max(1, Math.floor(this.#size / 2))
  }
}
