import { type HeapItem, IndexedHeap } from '../base/indexed-heap.ts'
import { OTHER } from './registry.ts'

/**
 * Which tenants get a label of their own?
 *
 * The busiest `namedMax`; all others are counted together as `other`, so that ten thousand tenants cannot make ten
 * thousand series. Volumes are followed with space-saving (Metwally, Agrawal, El Abbadi 2005): a fixed number of
 * slots; a newcomer takes the slot of the smallest unnamed tenant and inherits its volume, so that busy tenants stay.
 * The inherited part is remembered, and does not count towards a name.
 * Volumes halve at every review, so that the busiest of today beats the busiest of last month.
 *
 * A label must not flicker, because that breaks graphs. So while there is room, tenants are named at once. Later a name
 * passes to another tenant only at a review, only if that tenant has `promoteRatio` times the volume, and only after the
 * loser has had its name for `dwellUs`. A tenant without its name is counted as `other`; its own series stay, unmoved,
 * until `graceUs` later (the last scrape must see their last values) and are then forgotten through `onForget`. A name
 * won back within the grace goes on counting where it stopped: no counter ever goes back. Named and lingering
 * labels together are at most `namedMax + namedMax / 2`.
 *
 * Time is the entries' own, so the same entries give the same labels. It does not know what a volume is.
 *
 * Example: namedMax 2; a (100), b (50) are named at once. c sends 90 before the review: it becomes 45 against b's 25,
 * and 45 < 2 × 25, so it stays `other`. Next minute it sends 90 again: 67 against 12: c is named, b lingers.
 */
export interface TopLabelsOptions {
  readonly namedMax?: number
  readonly reviewUs?: number
  readonly dwellUs?: number
  readonly graceUs?: number
  readonly promoteRatio?: number
  readonly onForget?: (label: string) => void
}

/** As many tenants as still fit a legend; with 4 models and a dozen outcomes and codes, about 2,000 series. */
const NAMED_MAX = 50
/** One minute: a few scrapes, so a change of name is seen as one and not as noise. */
const REVIEW_US = 60_000_000
/** A name is held at least this long: alerts look back five to ten minutes. */
const DWELL_US = 600_000_000
/** Longer than any sensible scrape interval, and than the five minutes Prometheus looks back. */
const GRACE_US = 600_000_000
/** Twice the volume is clearly larger; two tenants of about the same volume would swap the name for ever. */
const PROMOTE_RATIO = 2
/** Slots for unnamed tenants: space-saving keeps every one with more than 1/200 of their volume. */
const UNNAMED_MAX = 200

interface Slot extends HeapItem {
  readonly id: string
  volume: number
  /** The part of `volume` that was inherited from the evicted tenant. */
  inherited: number
  state: 'named' | 'lingering' | 'unnamed'
  changedAt: number
}

export class TopLabels {
  readonly #slots = new Map<string, Slot>()
  /**
   * Unnamed slots. A slot's key is its volume when the slot was last met, never more than its volume now: a slot that
   * has grown gets its new key when it comes up for eviction, not with every request.
   */
  readonly #smallestFirst = new IndexedHeap<Slot>()
  #slotSequence = 0
  readonly #namedMax: number
  readonly #lingeringMax: number
  readonly #reviewUs: number
  readonly #dwellUs: number
  readonly #graceUs: number
  readonly #promoteRatio: number
  readonly #onForget: ((label: string) => void) | undefined
  #namedCount = 0
  #lingeringCount = 0
  #reviewAt: number | undefined

  constructor(options: TopLabelsOptions = {}) {
    this.#namedMax = Math.max(1, options.namedMax ?? NAMED_MAX)
    this.#lingeringMax = Math.ceil(this.#namedMax / 2)
    this.#reviewUs = options.reviewUs ?? REVIEW_US
    this.#dwellUs = options.dwellUs ?? DWELL_US
    this.#graceUs = options.graceUs ?? GRACE_US
    this.#promoteRatio = options.promoteRatio ?? PROMOTE_RATIO
    this.#onForget = options.onForget
  }

  /** Counts the volume, and returns the label to count under. */
  observe(at: number, id: string, volume: number): string {
    if (this.#reviewAt === undefined) this.#reviewAt = at + this.#reviewUs
    else if (at >= this.#reviewAt) this.#review(at)
    // A tenant called `other` can never have a series of its own.
    if (id === OTHER) return OTHER
    const slot = this.#slots.get(id) ?? this.#takeSlot(at, id, volume)
    slot.volume += volume
    return slot.state === 'named' ? id : OTHER
  }

  /** Labels that may have series now, `other` left out. */
  labels(): string[] {
    return [...this.#slots.values()].filter((slot) => slot.state !== 'unnamed').map((slot) => slot.id)
  }

  #takeSlot(at: number, id: string, volume: number): Slot {
    const place = { heapIndex: -1, sequence: this.#slotSequence++ }
    const slot: Slot = { id, volume: 0, inherited: 0, state: 'unnamed', changedAt: at, ...place }
    if (this.#namedCount < this.#namedMax) this.#name(at, slot)
    else {
      if (this.#unnamedCount() >= UNNAMED_MAX) {
        slot.inherited = this.#evictSmallest()
        slot.volume = slot.inherited
      }
      // The new volume is counted already: most newcomers send no more.
      this.#smallestFirst.push(slot, slot.volume + volume)
    }
    this.#slots.set(id, slot)
    return slot
  }

  /** Evicts the smallest unnamed tenant, and returns its volume. */
  #evictSmallest(): number {
    const heap = this.#smallestFirst
    for (let slot = heap.peek(); slot !== undefined; slot = heap.peek()) {
      if (slot.volume > (heap.peekKey() as number)) heap.update(slot, slot.volume)
      else {
        heap.remove(slot)
        this.#slots.delete(slot.id)
        return slot.volume
      }
    }
    return 0
  }

  #review(at: number): void {
    // After a long silence one review stands for all that were missed.
    this.#reviewAt = at + this.#reviewUs
    for (const slot of this.#slots.values()) {
      slot.volume /= 2
      slot.inherited /= 2
      if (slot.state === 'unnamed') this.#smallestFirst.update(slot, slot.volume)
    }
    this.#forgetLingering(at)
    for (let swaps = 0; swaps < this.#namedMax; swaps++) if (!this.#promoteOne(at)) return
  }

  #promoteOne(at: number): boolean {
    const isBigger = (a: Slot, b: Slot) => ownVolume(a) > ownVolume(b)
    // A lingering tenant still has its series, so it may come back even when no other tenant may linger.
    const returning = this.#pick('lingering', isBigger)
    const rising = this.#lingeringCount < this.#lingeringMax ? this.#pick('unnamed', isBigger) : undefined
    const best = returning !== undefined && (rising === undefined || !isBigger(rising, returning)) ? returning : rising
    if (best === undefined) return false
    const weakest = this.#pick(
      'named',
      (a, b) => ownVolume(a) < ownVolume(b),
      (slot) => at - slot.changedAt >= this.#dwellUs,
    )
    if (weakest === undefined || ownVolume(best) === 0) return false
    if (ownVolume(best) < ownVolume(weakest) * this.#promoteRatio) return false
    if (best.state === 'lingering') this.#lingeringCount--
    else this.#smallestFirst.remove(best)
    this.#namedCount--
    weakest.state = 'lingering'
    weakest.changedAt = at
    this.#lingeringCount++
    this.#name(at, best)
    return true
  }

  #forgetLingering(at: number): void {
    for (const slot of this.#slots.values()) {
      if (slot.state !== 'lingering' || at - slot.changedAt < this.#graceUs) continue
      this.#lingeringCount--
      this.#slots.delete(slot.id)
      this.#onForget?.(slot.id)
    }
  }

  #name(at: number, slot: Slot): void {
    slot.state = 'named'
    slot.changedAt = at
    this.#namedCount++
  }

  #unnamedCount(): number {
    return this.#slots.size - this.#namedCount - this.#lingeringCount
  }

  /** The first of the best in order of arrival, so that ties are always broken the same way. */
  #pick(
    state: Slot['state'],
    isBetter: (a: Slot, b: Slot) => boolean,
    isEligible: (slot: Slot) => boolean = () => true,
  ): Slot | undefined {
    let best: Slot | undefined
    for (const slot of this.#slots.values())
      if (slot.state === state && isEligible(slot) && (best === undefined || isBetter(slot, best))) best = slot
    return best
  }
}

function ownVolume(slot: Slot): number {
  return slot.volume - slot.inherited
}
