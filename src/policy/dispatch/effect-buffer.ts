import { type Effect, NO_EFFECTS } from './offer.ts'

/**
 * What has happened during this call? Collects effects in order and hands them over once. Most calls have none or
 * one, and an array that grows by pushing reserves seventeen places: this one reserves them once for all calls.
 */
export class EffectBuffer {
  readonly #effects: Array<Effect | undefined> = []
  #count = 0

  push(effect: Effect): void {
    this.#effects[this.#count++] = effect
  }

  /** Everything since the last time, in order. From here it belongs to the caller. */
  take(): readonly Effect[] {
    if (this.#count === 0) return NO_EFFECTS
    const [first] = this.#effects
    if (this.#count === 1 && first !== undefined) {
      this.#effects[0] = undefined
      this.#count = 0
      return [first]
    }
    const taken = this.#effects.slice(0, this.#count) as Effect[]
    this.#effects.fill(undefined, 0, this.#count)
    this.#count = 0
    return taken
  }
}
