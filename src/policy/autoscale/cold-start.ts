/**
 * How long does a replica of this pool take from its order to its first answer to a probe?
 *
 * The middle of the last few that were seen, and the operator's figure until then. Starts are few and alike (weights are
 * loaded, kernels compiled), and the odd one that waits for a machine says little about the next: so the median, of a few.
 *
 * Bound: STARTS_MAX. Example: 60 s by the settings; starts of 42, 40 and 95 s are seen: 42 s.
 */
const STARTS_MAX = 9
/** A start that takes longer than this was no start: somebody was called back, or a machine was found hours later. */
const START_US_MAX = 3_600_000_000

export class ColdStart {
  readonly #starts: number[] = []
  readonly #priorUs: number

  constructor(priorUs: number) {
    this.#priorUs = priorUs
  }

  observe(tookUs: number): void {
    if (tookUs <= 0 || tookUs > START_US_MAX) return
    this.#starts.push(tookUs)
    if (this.#starts.length > STARTS_MAX) this.#starts.shift()
  }

  get sampleCount(): number {
    return this.#starts.length
  }

  get us(): number {
    const sorted = this.#starts.toSorted((a, b) => a - b)
    return sorted[Math.floor((sorted.length - 1) / 2)] ?? this.#priorUs
  }
}
