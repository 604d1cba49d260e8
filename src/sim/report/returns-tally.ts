import type { Entry } from '../../domain/entry.ts'

/** Clients that were told when to come back: did they find the room that was kept for them? */
export interface ReturnsView {
  /** Refusals with a return slot, and refused as too late without one. */
  readonly given: number
  readonly none: number
  /** Came on their slots: admitted, or refused again. */
  readonly kept: number
  readonly broken: number
  readonly keptRatio: number | undefined
}

export class ReturnsTally {
  #given = 0
  #none = 0
  #kept = 0
  #broken = 0

  take(entry: Entry): void {
    if (entry.kind === 'admitted' && entry.isOnSlot === true) this.#kept++
    if (entry.kind !== 'settled') return
    if (entry.refusal?.slot === 'given') this.#given++
    if (entry.refusal?.slot === 'none') this.#none++
    if (entry.refusal?.isSlotBroken === true) this.#broken++
  }

  get view(): ReturnsView {
    const kept = this.#kept
    const broken = this.#broken
    const keptRatio = kept + broken === 0 ? undefined : kept / (kept + broken)
    return { given: this.#given, none: this.#none, kept, broken, keptRatio }
  }
}
