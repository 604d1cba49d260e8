import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import { countedWeight, type Share, type Siblings } from './share.ts'

/**
 * Which sibling goes next, when the one that has received least goes first?
 *
 * The Virtual Token Counter (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024): every share has a
 * counter of service received per weight; the smallest goes next. A share that comes back is lifted to the smallest
 * counter of the active ones, or of the last one that left when there are none, so that idling earns nothing. As
 * published it charges the input when a turn is taken and the output while it is generated (`isChargedAhead` false
 * in `make-fairness.ts`); it is here to be compared with, because what is learned late is made good late.
 *
 * Deliberately not: no prediction, no rounds. Costs O(log n) a turn, where deficit round robin costs O(1).
 *
 * Law L7: two active shares' counters differ by at most the largest charge, input plus all output of the turns in
 * flight (theorem 4.4 of the paper: 2·max(w_p·L_input, w_q·M) with M the tokens that fit into a batch).
 *
 * Worked example: a's counter is 500, b's 300 (weight 1): b goes, input 100 → 400, b goes again → 500; then a, which
 * was filed earlier. c returns with 20 and is lifted to 500.
 */
export class VirtualTokenCounter<S extends Share> implements Siblings<S> {
  readonly #active = new IndexedHeap<S>()
  #sequence = 0
  /** Counter of the one that left last: the level from which an idle order starts again. */
  #level = 0
  #asideCount = 0

  get size(): number {
    return this.#active.size + this.#asideCount
  }

  get askedCount(): number {
    return this.#active.size
  }

  enter(share: S): void {
    share.account = Math.max(share.account, this.#active.peekKey() ?? this.#level)
    share.sequence = this.#sequence++
    share.isActive = true
    this.#active.push(share, share.account)
  }

  leave(share: S): void {
    share.isActive = false
    if (!share.isAside) this.#active.remove(share)
    else {
      share.isAside = false
      this.#asideCount--
    }
    this.#level = Math.max(this.#level, share.account)
  }

  pass(share: S): void {
    share.isAside = true
    this.#asideCount++
    this.#active.remove(share)
  }

  /** With its own counter: it did not idle. */
  recall(share: S): void {
    share.isAside = false
    this.#asideCount--
    this.#active.push(share, share.account)
  }

  first(): S | undefined {
    return this.#active.peek()
  }

  takeTurn(share: S, cost: number): void {
    share.sequence = this.#sequence++
    this.charge(share, cost)
  }

  charge(share: S, cost: number): void {
    share.account += cost / countedWeight(share)
    if (share.isActive && !share.isAside) this.#active.update(share, share.account)
  }

  reweigh(share: S, weight: number): void {
    share.weight = weight
  }

  adopt(share: S, standing: number): void {
    share.account = (this.#active.peekKey() ?? this.#level) - standing / countedWeight(share)
  }

  standingOf(share: S): number {
    return ((this.#active.peekKey() ?? this.#level) - share.account) * countedWeight(share)
  }

  debtOf(share: S): number {
    return Math.max(0, -this.standingOf(share))
  }

  roundsOwedTo(share: S): number {
    return this.standingOf(share) >= 0 ? 1 : 0
  }

  turnsOwedTo(share: S): number {
    return this.roundsOwedTo(share)
  }

  assertInvariants(): void {
    for (const share of this.#active) {
      assert(share.isActive && !share.isAside && this.#active.has(share), 'an active share knows its place')
    }
  }
}
