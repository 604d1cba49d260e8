import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { MedianCost } from './median-cost.ts'
import { countedWeight, type Share, type Siblings } from './share.ts'

/**
 * Which sibling goes next, when each should get work in proportion to its weight?
 *
 * Weighted deficit round robin (Shreedhar and Varghese, 1995), in the variant where the deficit may go negative: a
 * share may take a turn while its deficit is above zero; the turn's predicted cost is taken off, whatever is learned
 * later (longer answer, measured usage) is taken off or given back when it is learned. Every round adds
 * quantum = weight × the median cost of a turn. So nobody needs to know the true cost in advance, and errors are
 * made good in the next rounds.
 *
 * A round is only a number. A share's next turn is in the first round in which its deficit is above zero, and it
 * stands in the list of that round; when nobody is left in the present round, the present round becomes the next one
 * with somebody in it, however far (a bulk round: an answer of a thousand quanta costs no thousand visits).
 *
 *     fresh: [g]        back from idling, with something left to spend in the present round
 *     round:   7        8        9 …        38     39 and later
 *     wheel: [a ↔ d]  [b]      [ ]        [c]      far: heap of {e: 52, f: 80}
 *              ▲ present; after its turn a stands behind d, or in a later list once its deficit is used up
 *
 * A share that was away gets the quanta of the rounds it missed, but its deficit never exceeds one quantum: debt
 * decays, credit is not hoarded, and it starts no better than the least served active sibling. Inside the present round
 * it goes first (as new flows do in fq_codel, RFC 8290): it has no more to spend than the others, but who asks for
 * little does not wait for a whole round of those who ask for much. When the last one leaves, the round moves on
 * until that one's debt is paid: after an idle spell everybody starts level. Charges of turns that still run are a part of
 * that debt. If such a turn proves to have cost less, the difference is credit on top, spent in one run: a first turn
 * charged 420 that costs 60 gives 360, six turns more of 60. It is no more than what was still to be corrected (below).
 *
 * A share whose head fits nowhere stands aside: in no list, but active. Its quanta go on adding up, and rounds move on
 * only with turns that are taken past it: to ask somebody who fits no better is not a round.
 *
 * Deliberately not: no clock (only rounds with competition in them count), no preemption, no knowledge of readiness
 * or room.
 *
 * Law L7. Over any interval in which siblings i and j are both active, work charged per weight differs by at most
 * 2·Q + (C_i + E_i)/w_i + (C_j + E_j)/w_j: Q the largest quantum per weight, C the largest cost of a turn, E the largest
 * sum of corrections between two turns of one share. Work measured differs by at most that and what is still to be
 * corrected.
 *
 * Worked example: quantum 100 each. a takes a turn of 350: deficit 100 − 350 = −250, next turn in round 10 (three
 * more quanta make it 50). b and c with turns of 100 each get rounds 8 and 9 to themselves. At settle a's turn proves
 * to have cost 150: the deficit rises by 200 and a's next turn comes in round 8.
 */

/** Rounds that have a list of their own; a share due later waits in a heap. One bit each in a 32-bit word. */
const WHEEL_ROUNDS = 32
/**
 * Turns, or quanta where those are more, that a share may have saved up while what it had fitted nowhere. It is owed
 * them, so they are not taken away at one; but a share whose head waits an hour for the only replica that is big enough
 * must not have the hour that follows.
 */
const CREDIT_TURNS_MAX = 32
/** The list behind those of the rounds: shares that have just entered and are due. */
const FRESH = WHEEL_ROUNDS

export class DeficitRoundRobin<S extends Share> implements Siblings<S> {
  readonly #typical: MedianCost
  readonly #roundsPerTurn: number
  #round = 0
  #size = 0
  #asideCount = 0
  #sequence = 0
  /** While there has never been more than one at a time, no wheel is made: most tenants have one key. */
  #only: S | undefined
  #wheel: Array<Share | undefined> | undefined
  /** Bit r mod 32 says whether the list of round r has anybody in it. */
  #occupied = 0
  #far: IndexedHeap<S> | undefined

  constructor(typical: MedianCost, { roundsPerTurn = 1 }: { readonly roundsPerTurn?: number } = {}) {
    this.#typical = typical
    this.#roundsPerTurn = roundsPerTurn
  }

  get size(): number {
    return this.#size
  }

  get askedCount(): number {
    return this.#size - this.#asideCount
  }

  enter(share: S): void {
    if (this.#asideCount === 0) this.#toNextOccupiedRound()
    const missed = this.#round - share.asOf
    const quantum = this.#quantumOf(share)
    share.account = share.quantum === 0 ? quantum : Math.min(quantum, share.account + share.quantum * missed)
    share.asOf = this.#round
    share.quantum = quantum
    share.isActive = true
    this.#size++
    this.#file(share, true)
  }

  leave(share: S): void {
    if (!share.isAside) this.#unfile(share)
    else {
      share.isAside = false
      this.#asideCount--
    }
    share.isActive = false
    this.#size--
    if (this.#size === 0) this.#round = Math.max(this.#round, this.#dueRound(share))
  }

  pass(share: S): void {
    this.#unfile(share)
    share.isAside = true
    this.#asideCount++
  }

  /** Before those who stand in the present round, if that is where it belongs: its turn came before theirs. */
  recall(share: S): void {
    this.#asideCount--
    share.isAside = false
    this.#settleAccount(share, 0)
    share.account = Math.min(
      share.account,
      CREDIT_TURNS_MAX * Math.max(this.#roundsPerTurn * share.quantum, share.turnCost),
    )
    this.#file(share, true)
  }

  roundsOwedTo(share: S): number {
    // Alone, it is always its turn.
    return this.#size <= 1 || share.quantum === 0 ? 1 : this.standingOf(share) / (this.#roundsPerTurn * share.quantum)
  }

  turnsOwedTo(share: S, cost: number): number {
    return this.#size <= 1 ? 1 : this.standingOf(share) / Math.max(1, this.#roundsPerTurn * share.quantum, cost)
  }

  first(): S | undefined {
    if (this.askedCount === 0) return undefined
    if (this.#asideCount > 0) return this.#earliest()
    this.#toNextOccupiedRound()
    return this.#only ?? ((this.#wheel?.[FRESH] ?? this.#wheel?.[this.#round % WHEEL_ROUNDS]) as S)
  }

  /** The same while somebody stands aside: whoever is asked may fit no better, and a round that nobody used is none. */
  #earliest(): S | undefined {
    const next = this.#only ?? this.#wheel?.[FRESH]
    if (next !== undefined) return next as S
    const far = this.#far?.peek()
    if (this.#occupied === 0) return far
    const near = this.#round + this.#distance()
    return far !== undefined && far.round < near ? far : (this.#wheel?.[near % WHEEL_ROUNDS] as S)
  }

  takeTurn(share: S, cost: number): void {
    // Somebody stands aside, and a turn was taken past it: the rounds up to this one have been.
    if (this.#asideCount > 0 && share.round > this.#round && this.#earliest() === share) this.#toNextOccupiedRound()
    this.#settleAccount(share, cost)
    share.turnCost = cost
    if (!share.isActive || share.isAside) return
    // To the end of its list even if that is the same one: a heavy share's turns are spread over the round.
    this.#unfile(share)
    this.#file(share, false)
  }

  charge(share: S, cost: number): void {
    this.#settleAccount(share, cost)
    this.#refile(share)
  }

  reweigh(share: S, weight: number): void {
    share.weight = weight
    if (share.quantum === 0) return
    this.#settleAccount(share, 0)
    this.#refile(share)
  }

  adopt(share: S, standing: number): void {
    share.account = standing
    // One round back: when it enters, it gets the present round's quantum like the others.
    share.asOf = this.#round - 1
    share.quantum = this.#quantumOf(share)
  }

  standingOf(share: S): number {
    const account = share.account + share.quantum * (this.#round - share.asOf)
    return share.isActive ? account : Math.min(share.quantum, account)
  }

  /** Rounds until it is due, at a quantum each; the present one is half over for those who are still in it. */
  debtOf(share: S): number {
    const standing = this.standingOf(share)
    return standing > 0 || share.quantum === 0 ? 0 : (Math.floor(-standing / share.quantum) + 0.5) * share.quantum
  }

  /** Brings the account up to the present round, with today's quantum from here on, and takes the cost off. */
  #settleAccount(share: S, cost: number): void {
    share.account = this.standingOf(share) - cost
    share.asOf = this.#round
    share.quantum = this.#quantumOf(share)
  }

  #quantumOf(share: S): number {
    return (countedWeight(share) * this.#typical.value) / this.#roundsPerTurn
  }

  #dueRound(share: S): number {
    if (share.account > 0) return Math.max(this.#round, share.asOf)
    return Math.max(this.#round, share.asOf + Math.floor(-share.account / share.quantum) + 1)
  }

  #refile(share: S): void {
    if (!share.isActive || share.isAside || this.#dueRound(share) === share.round) return
    this.#unfile(share)
    this.#file(share, false)
  }

  #file(share: S, isFresh: boolean): void {
    share.round = this.#dueRound(share)
    share.sequence = this.#sequence++
    if (this.#wheel === undefined) {
      if (this.#only === undefined) {
        this.#only = share
        share.slot = isFresh ? FRESH : 0
        return
      }
      const only = this.#only
      this.#only = undefined
      this.#wheel = Array.from<Share | undefined>({ length: WHEEL_ROUNDS + 1 })
      this.#shelve(only, only.slot === FRESH)
    }
    this.#shelve(share, isFresh)
  }

  #shelve(share: S, isFresh: boolean): void {
    if (isFresh && share.round === this.#round) this.#append(share, FRESH)
    else if (share.round - this.#round < WHEEL_ROUNDS) this.#append(share, share.round % WHEEL_ROUNDS)
    else {
      this.#far ??= new IndexedHeap<S>()
      this.#far.push(share, share.round)
    }
  }

  #unfile(share: S): void {
    if (this.#only === share) this.#only = undefined
    else if (share.heapIndex >= 0) this.#far?.remove(share)
    else this.#unlink(share)
  }

  /** The present round becomes the earliest that has anybody in it. */
  #toNextOccupiedRound(): void {
    if (this.askedCount === 0) return
    if (this.#only !== undefined) {
      this.#round = Math.max(this.#round, this.#only.round)
      return
    }
    if (this.#wheel?.[FRESH] !== undefined) return
    const near = this.#occupied === 0 ? Number.POSITIVE_INFINITY : this.#round + this.#distance()
    let far = this.#far?.peek()
    this.#round = far === undefined || near < far.round ? near : far.round
    while (far !== undefined && far.round <= this.#round) {
      this.#far?.pop()
      this.#append(far, far.round % WHEEL_ROUNDS)
      far = this.#far?.peek()
    }
  }

  /** How many rounds ahead the first occupied list is: the lowest set bit, counted from the present round's. */
  #distance(): number {
    const shift = this.#round % WHEEL_ROUNDS
    const turned =
      shift === 0 ? this.#occupied : (this.#occupied >>> shift) | (this.#occupied << (WHEEL_ROUNDS - shift))
    return 31 - Math.clz32(turned & -turned)
  }

  #append(share: S, slot: number): void {
    const wheel = this.#wheel as Array<Share | undefined>
    const head = wheel[slot]
    share.slot = slot
    if (head === undefined) {
      share.previous = share
      share.following = share
      wheel[slot] = share
      if (slot !== FRESH) this.#occupied |= 1 << slot
      return
    }
    const last = head.previous as Share
    last.following = share
    share.previous = last
    share.following = head
    head.previous = share
  }

  #unlink(share: S): void {
    const wheel = this.#wheel as Array<Share | undefined>
    const { slot } = share
    const following = share.following as Share
    if (following === share) {
      wheel[slot] = undefined
      if (slot !== FRESH) this.#occupied &= ~(1 << slot)
    } else {
      const previous = share.previous as Share
      previous.following = following
      following.previous = previous
      if (wheel[slot] === share) wheel[slot] = following
    }
    share.previous = undefined
    share.following = undefined
  }

  assertInvariants(): void {
    let count = this.#only === undefined ? 0 : 1
    if (this.#wheel === undefined) assert(this.#occupied === 0, 'without a wheel there are no lists')
    for (let slot = 0; this.#wheel !== undefined && slot <= FRESH; slot++) {
      const head = this.#wheel[slot]
      const isOccupied = (this.#occupied & (1 << slot)) !== 0
      assert(slot === FRESH || (head !== undefined) === isOccupied, 'the occupied bits match the lists')
      for (let share = head; share !== undefined; share = share.following === head ? undefined : share.following) {
        count++
        const round = slot === FRESH ? this.#round : share.round
        assert(share.isActive && share.round === round && share.slot === slot, 'an active share stands in its own list')
        assert(slot === FRESH || share.round % WHEEL_ROUNDS === slot, 'a list is that of its round')
        assert(share.round >= this.#round && share.round < this.#round + WHEEL_ROUNDS, 'its round is on the wheel')
        assert(share.following?.previous === share, 'the list is whole')
      }
    }
    for (const share of this.#far ?? []) {
      count++
      assert(share.isActive && share.round >= this.#round, 'a far share is still to come')
    }
    assert(count === this.askedCount, 'every active share stands in one list or aside')
  }
}
