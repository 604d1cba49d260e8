import { assert } from '../../base/assert.ts'
import type { Share, Siblings } from './share.ts'

/**
 * Which sibling goes next, when each gets one turn after the other? Plain round robin: neither weights nor costs
 * count. It is here to be compared with: a tenant whose requests are ten times as long gets ten times the work.
 *
 * Worked example: a (turns of 1,000) and b (turns of 100) alternate; after 20 turns a had 10,000 and b 1,000.
 */
export class RoundRobin<S extends Share> implements Siblings<S> {
  #head: S | undefined
  #size = 0
  #askedCount = 0

  get size(): number {
    return this.#size
  }

  get askedCount(): number {
    return this.#askedCount
  }

  enter(share: S): void {
    share.isActive = true
    this.#size++
    this.#link(share)
  }

  leave(share: S): void {
    share.isActive = false
    this.#size--
    if (share.isAside) share.isAside = false
    else this.#unlink(share)
  }

  pass(share: S): void {
    share.isAside = true
    this.#unlink(share)
  }

  /** Its turn has come before: it is next. */
  recall(share: S): void {
    share.isAside = false
    this.#link(share)
    this.#head = share
  }

  #link(share: S): void {
    this.#askedCount++
    const head = this.#head
    if (head === undefined) {
      share.previous = share
      share.following = share
      this.#head = share
      return
    }
    const last = head.previous as Share
    last.following = share
    share.previous = last
    share.following = head
    head.previous = share
  }

  #unlink(share: S): void {
    this.#askedCount--
    const following = share.following as S
    if (following === share) this.#head = undefined
    else {
      const previous = share.previous as Share
      previous.following = following
      following.previous = previous
      if (this.#head === share) this.#head = following
    }
    share.previous = undefined
    share.following = undefined
  }

  first(): S | undefined {
    return this.#head
  }

  takeTurn(share: S): void {
    if (!share.isActive || share.isAside) return
    this.#unlink(share)
    this.#link(share)
  }

  charge(): void {}

  reweigh(share: S, weight: number): void {
    share.weight = weight
  }

  adopt(): void {}

  standingOf(): number {
    return 0
  }

  debtOf(): number {
    return 0
  }

  roundsOwedTo(): number {
    return 1
  }

  turnsOwedTo(): number {
    return 1
  }

  assertInvariants(): void {
    let count = 0
    for (let share: Share | undefined = this.#head; share !== undefined; ) {
      count++
      assert(share.isActive && share.following?.previous === share, 'the ring is whole')
      share = share.following === this.#head ? undefined : share.following
    }
    assert(count === this.#askedCount && count <= this.#size, 'every active share stands in the ring or aside')
  }
}
