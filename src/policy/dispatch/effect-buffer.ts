import { type Effect, NO_EFFECTS } from './offer.ts'

/**
 * What has happened during this call? Collects effects in order and hands them over once. Most calls have no
 * effect or one, and an array that grows by pushing reserves seventeen places: this buffer reserves them once.
 */
export class EffectBuffer {
  readonly #effects: Array<Effect | undefined> = []
  #count = 0

  push(effect: Effect): void {
    this.#effects[this.#count++] = effect
  }

  /** Effects since the last call, in order. The array belongs to the caller from here. */
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
