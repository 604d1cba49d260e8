import type { Load } from './ledger.ts'
import type { Limit, LimitView } from './limit.ts'

/**
 * How much may be in flight at a replica, when the operator knows it? So many sequences and no more, whatever happens.
 * For engines with a fixed number of slots, and the yardstick for limits that learn. It deliberately learns nothing.
 *
 * Law L2. Worked example: 64 → the 65th waits here until one of the 64 comes back.
 */
export const FIXED_LIMIT_DEFAULTS = {
  /** Sequences. vLLM's default on large GPUs is 256; past 64 an 8B model on an H100 gains little and waits longer. */
  sequencesMax: 64,
} as const

export class FixedLimit implements Limit {
  readonly name = 'fixed'
  readonly #sequencesMax: number

  constructor(options: { readonly sequencesMax: number } = FIXED_LIMIT_DEFAULTS) {
    this.#sequencesMax = options.sequencesMax
  }

  isFull(load: Load): boolean {
    return load.sequences >= this.#sequencesMax
  }

  fits(load: Load): boolean {
    return load.sequences < this.#sequencesMax
  }

  fullness(load: Load): number {
    return load.sequences / this.#sequencesMax
  }

  observe(): void {}

  view(): LimitView {
    return { sequencesMax: this.#sequencesMax, because: 'configured' }
  }
}
