import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import { countedWeight, type Share, type Siblings } from './share.ts'

/**
 * Which sibling goes next, when the one goes whose turn an ideal server would finish first?
 *
 * Weighted fair queueing (Demers, Keshav and Shenker, 1989; Parekh and Gallager's packet-by-packet generalised processor
 * sharing, 1993). The ideal server works on every backlogged share at once, in proportion to the weights. Its *virtual
 * time* is the work that it has done per weight. A share's head has a start tag, S = max(finish tag of its last turn,
 * virtual time at which the share came), and a finish tag, F = S + cost / weight; the smallest F goes next.
 *
 *     virtual time ──●──────────────────▶      ● = 100
 *     a (weight 1)   [S 100 ····· F 400]       head costs 300
 *     b (weight 2)   [S 100 · F 150]           head costs 100: b goes, its next head starts at 150
 *
 * Real and ideal server do the same work, so the virtual time is counted in work and needs no clock: a turn of cost c
 * moves it by c / (weights that the ideal server is working on). Those are the shares in the order, and the shares that
 * have left with more than their part (`#ahead`): the ideal server still works on what they had, and each drops out when
 * the virtual time reaches its finish tag. Following these ends one by one is what makes this order dear (iterated
 * deletion); a heap of finish tags makes it O(log n) a turn.
 *
 * Two things differ from a link with packets. A turn's cost is corrected after the turn: the correction moves the
 * share's tag, and the virtual time as the same work would have. And only heads have tags: a share with something
 * queued counts as backlogged in the ideal server, which may be up to one turn ahead of the real one.
 *
 * Deliberately not: no rounds. Of hierarchies, each level is an ideal server of its own, as in H-WFQ (Bennett and Zhang,
 * 1996), whose heads are those of the level below.
 *
 * Law L7: a share's turns end at most two turns of the dearest cost later than in the ideal server: one by theorem 1 of
 * Parekh and Gallager, one because the virtual time moves by whole turns, when they begin. A share may be ahead of the
 * ideal server by the turns of n siblings, which WF²Q repairs and this order does not.
 *
 * Invariant: over all shares that the ideal server works on, Σ weight · (tag − virtual time) = 0: what some have had too
 * much others miss.
 */
export class WeightedFairQueueing<S extends Share> implements Siblings<S> {
  /** Shares that may be asked, by the finish tag of their heads. `account` is the start tag. */
  readonly #asked = new IndexedHeap<S>()
  readonly #aside = new Set<S>()
  /** Shares that have left with more than their part, by the finish tag of their last turn. */
  readonly #ahead = new IndexedHeap<S>()
  #virtualTime = 0
  /** Sum of the weights that the ideal server works on. */
  #weight = 0
  #sequence = 0

  get size(): number {
    return this.#asked.size + this.#aside.size
  }

  get askedCount(): number {
    return this.#asked.size
  }

  enter(share: S): void {
    const isWorkedOn = this.#ahead.has(share)
    if (isWorkedOn) this.#ahead.remove(share)
    else share.account = Math.max(share.account, this.#virtualTime)
    share.sequence = this.#sequence++
    share.isActive = true
    this.#asked.push(share, finishTagOf(share))
    if (!isWorkedOn) this.#join(share)
  }

  leave(share: S): void {
    share.isActive = false
    if (share.isAside) this.#aside.delete(share)
    else this.#asked.remove(share)
    share.isAside = false
    if (share.account > this.#virtualTime) this.#ahead.push(share, share.account)
    else this.#drop(share)
    // The real server has nothing to do, so the ideal one has done everything too: all start level.
    if (this.size === 0) this.#settle()
  }

  pass(share: S): void {
    share.isAside = true
    this.#asked.remove(share)
    this.#aside.add(share)
  }

  /** With its own tag: it did not idle. */
  recall(share: S): void {
    share.isAside = false
    this.#aside.delete(share)
    this.#asked.push(share, finishTagOf(share))
  }

  first(): S | undefined {
    return this.#asked.peek()
  }

  takeTurn(share: S, cost: number): void {
    share.sequence = this.#sequence++
    this.charge(share, cost)
  }

  charge(share: S, cost: number): void {
    share.account += cost / countedWeight(share)
    if (share.isActive) {
      this.#move(cost)
      this.rehead(share)
    } else if (this.#ahead.has(share)) {
      this.#ahead.update(share, share.account)
      this.#move(cost)
    } else if (share.account > this.#virtualTime) {
      this.#ahead.push(share, share.account)
      this.#join(share)
    }
  }

  /** The head is another one. */
  rehead(share: S): void {
    if (share.isActive && !share.isAside) this.#asked.update(share, finishTagOf(share))
  }

  reweigh(share: S, weight: number): void {
    const before = countedWeight(share)
    share.weight = weight
    if (!share.isActive && !this.#ahead.has(share)) return
    const more = countedWeight(share) - before
    this.#weight += more
    this.#move(more * (share.account - this.#virtualTime))
    this.rehead(share)
  }

  /** What it was ahead of the others, they have not missed. */
  disown(share: S): void {
    if (!this.#ahead.has(share)) return
    this.#ahead.remove(share)
    this.#drop(share)
  }

  adopt(share: S, standing: number): void {
    share.account = this.#virtualTime - standing / countedWeight(share)
  }

  standingOf(share: S): number {
    return (this.#virtualTime - share.account) * countedWeight(share)
  }

  debtOf(share: S): number {
    return Math.max(0, -this.standingOf(share))
  }

  /** A start tag that the ideal server has reached: it is working on that head. */
  roundsOwedTo(share: S): number {
    return share.account <= this.#virtualTime ? 1 : 0
  }

  turnsOwedTo(share: S): number {
    return this.roundsOwedTo(share)
  }

  /** The share is worked on from here; what it is ahead of the others, the ideal server has done too. */
  #join(share: S): void {
    const weight = countedWeight(share)
    this.#weight += weight
    this.#move((share.account - this.#virtualTime) * weight)
  }

  /** What the share had not yet used of its part goes to the others: absence earns nothing. */
  #drop(share: S): void {
    const weight = countedWeight(share)
    const unused = (this.#virtualTime - share.account) * weight
    this.#weight -= weight
    this.#move(unused)
  }

  /** The ideal server does this much work (or, negative, had done less), and shares that end on the way drop out. */
  #move(work: number): void {
    if (work < 0) this.#moveBack(work)
    else this.#moveOn(work)
    if (this.size === 0 && this.#ahead.size === 0) this.#weight = 0
  }

  /** A correction may take a share behind the virtual time that has nothing queued: the others have what it missed. */
  #moveBack(work: number): void {
    if (this.#weight > 0) this.#virtualTime += work / this.#weight
    const first = this.#ahead.peek()
    if (first === undefined || first.account > this.#virtualTime) return
    this.#ahead.remove(first)
    this.#drop(first)
  }

  #moveOn(work: number): void {
    let left = work
    for (let next = this.#ahead.peek(); next !== undefined; next = this.#ahead.peek()) {
      const workToEnd = (next.account - this.#virtualTime) * this.#weight
      if (workToEnd > left) break
      left -= workToEnd
      this.#virtualTime = next.account
      this.#ahead.remove(next)
      this.#weight -= countedWeight(next)
    }
    if (this.size + this.#ahead.size > 0) this.#virtualTime += left / this.#weight
  }

  #settle(): void {
    for (let last = this.#ahead.pop(); last !== undefined; last = this.#ahead.pop()) {
      this.#virtualTime = Math.max(this.#virtualTime, last.account)
    }
    this.#weight = 0
  }

  assertInvariants(): void {
    let weight = 0
    let balance = 0
    let scale = 1
    for (const share of [...this.#asked, ...this.#aside, ...this.#ahead]) {
      const counted = countedWeight(share)
      weight += counted
      balance += counted * (share.account - this.#virtualTime)
      scale += counted * (Math.abs(share.account) + Math.abs(this.#virtualTime))
    }
    for (const share of this.#asked) assert(share.isActive && !share.isAside, 'an asked share knows its place')
    for (const share of this.#aside) assert(share.isActive && share.isAside, 'a share that stands aside knows it')
    for (const share of this.#ahead) assert(!share.isActive, 'a share that has left is in no order')
    assert(Math.abs(weight - this.#weight) <= 1e-9 * Math.max(1, weight), 'the ideal server knows what it works on')
    assert(Math.abs(balance) <= 1e-6 * scale, 'the ideal server has done the work of the real one')
  }
}

const finishTagOf = (share: Share): number => share.account + share.headCost() / countedWeight(share)
