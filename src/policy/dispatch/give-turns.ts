import { assert } from '../../base/assert.ts'
import type { Estimate } from '../../domain/plan.ts'
import { kvTokensOf } from '../limits/booked-room.ts'
import type { Book } from './book.ts'
import type { Candidate, PoolLane } from './candidate.ts'
import { Codel } from './codel.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import type { Kept } from './kept-rooms.ts'
import { KnownPrompts } from './known-prompts.ts'
import type { PlaceSeeker } from './offer.ts'
import type { Placer } from './placer.ts'
import type { PoolState, Side } from './pool-state.ts'
import type { CommonTurns } from './pool-turns.ts'
import type { ReplicaRoom } from './replica-room.ts'

/**
 * Who goes now? The dispatcher's inner loop for one pool: the order of turns, then the same for offline work, with
 * what is left over. It ends when no room is open, nobody is ready, or `lookAheadMax` heads fit nowhere.
 *
 *     order:  lane, lane, …  ── fits? ──▶ granted;  no ──▶ passed over, and the next lane is asked
 *     owed:   [big₁ · big₂]  ── room has grown, and it fits? ──▶ back in the order, where its standing puts it
 *
 * A lane that is passed over keeps its place: its part of every round goes on being counted, who goes meanwhile is
 * charged as always, and so pays back. When it has been passed over `skipsMax` times, or is owed `roundsOwedMax` rounds,
 * one replica is kept free for its head; that lasts, head after head, until it has caught up.
 *
 * Where replicas are full and the one with room does not know the head's prompt, others may go first (`known-prompts.ts`).
 *
 * Where the queue is CoDel's (`codel.ts`), whoever is about to go may be dropped instead.
 *
 * The cost of one decision is bounded by `lookAheadMax` × open replicas, whatever waits. In a large pool a head that no
 * replica knows already is shown the first few that fit, from another place each time: the best of a few is nearly the
 * best of all (Mitzenmacher, 2001), and looking at a thousand would cost more than the rest of the request's story.
 */
/** Pools with more open replicas than this are sampled, not scanned. */
const LOOK_AT_ALL_MAX = 128
/** Replicas that fit, in a pool that is sampled: this many are enough to choose from. */
const FITTING_ENOUGH = 16
/** Distance in the list from one turn's first replica to the next turn's: a prime, so that all are looked at in time. */
const STRIDE = 61
/** No count of what made room: the owed lanes are looked at again. */
const NOT_LOOKED_AT = -1

export class TurnGiver {
  readonly #book: Book
  readonly #options: DispatcherOptions
  readonly #placer: Placer
  readonly #effects: EffectBuffer
  readonly #known: KnownPrompts
  readonly #fitting: ReplicaRoom[] = []
  /** Lanes that were owed a turn and are in the order again, because a room fitted them. At most `lookAheadMax`. */
  readonly #recalled: PoolLane[] = []
  /** KV tokens of the smallest that has had a turn since lanes were called back. */
  #goneKvTokens = 0
  /** By pool: a standing queue is one pool's. */
  readonly #codels = new Map<string, Codel>()
  /** Turns that may still be given before another pool is asked; Infinity where no engine is common. */
  #turnsLeft = Number.POSITIVE_INFINITY

  constructor(book: Book, options: DispatcherOptions, placer: Placer, effects: EffectBuffer) {
    this.#book = book
    this.#options = options
    this.#placer = placer
    this.#effects = effects
    this.#known = new KnownPrompts(placer, (now, pool, candidate) => this.#mayGo(now, pool, candidate))
  }

  give(now: number, pool: PoolState): void {
    this.#book.growing.catchUp(now)
    if (pool.turns !== undefined) {
      this.#giveInCommon(now, pool.turns.group)
      return
    }
    // Where every slot is taken, an arrival costs nothing more than its place in the queue.
    if (pool.open.length === 0 && pool.kept.all.length === 0 && pool.owedCount === 0) return
    // One ticket alone goes whatever the order says.
    if (pool.queuedCount > 1) this.#book.charges.catchUp(now, pool)
    this.#giveSide(now, pool, pool.foreground)
    this.#giveSide(now, pool, pool.leftover)
    this.#keepForSkipped(pool)
  }

  /** One turn at a time, to the pool that was charged least; what is left over when none of them can go, the same way. */
  #giveInCommon(now: number, group: CommonTurns<PoolState>): void {
    let growth: number
    do {
      growth = group.growth
      this.#giveSideInCommon(now, group, 'foreground')
      this.#giveSideInCommon(now, group, 'leftover')
      // A replica that is no longer kept is open to the pools that were asked before.
    } while (group.growth !== growth)
    for (const pool of group.inOrder()) this.#keepForSkipped(pool)
  }

  #giveSideInCommon(now: number, group: CommonTurns<PoolState>, side: 'foreground' | 'leftover'): void {
    let pools = group.inOrder()
    for (let i = 0; i < pools.length; i++) {
      const pool = pools[i] as PoolState
      this.#turnsLeft = 1
      this.#giveSide(now, pool, pool[side])
      const hasGone = this.#turnsLeft === 0
      this.#turnsLeft = Number.POSITIVE_INFINITY
      if (!hasGone) continue
      pools = group.inOrder()
      i = -1
    }
  }

  /**
   * Whether a ticket that joined now might have its turn at once. Every head that waits fits no open room (law L6), so
   * that is a ticket which would lead its lane and fits one. A lane's new head may also set free what is kept for the
   * lane. This may promise too much, there and where the look-ahead was cut short, and never too little.
   */
  mightGoNow(pool: PoolState, lane: PoolLane | undefined, seeker: PlaceSeeker, estimate: Estimate): boolean {
    if (lane !== undefined) {
      if (!lane.wouldLead(seeker, this.#options.lanes.agingUsPerBid)) return false
      if (lane.keptCount > 0) return true
    }
    for (const room of pool.open) if (room.fits(estimate, seeker.band)) return true
    return false
  }

  expire(pool: PoolState, candidate: Candidate, because = 'no turn came before its time to wait was over'): void {
    this.#book.dismiss(pool, candidate)
    pool.sync(candidate.lane)
    this.#effects.push({ kind: 'expired', ticketId: candidate.ticketId, because })
  }

  #giveSide(now: number, pool: PoolState, side: Side): void {
    do {
      this.#giveKept(now, pool)
      if (side.owed.length > 0 && side.lookedAt !== pool.roomGrowth) this.#giveOwed(now, pool, side)
      this.#giveInOrder(now, pool, side)
      this.#oweRecalled(pool)
      // A replica that is no longer kept is open to the lanes that were passed over before.
    } while (this.#turnsLeft > 0 && side.owed.length > 0 && side.lookedAt !== pool.roomGrowth)
  }

  /** Kept replicas go to the lanes that they are kept for, whether or not anything else is open. */
  #giveKept(now: number, pool: PoolState): void {
    const { all } = pool.kept
    for (let i = 0; i < all.length && this.#turnsLeft > 0; i++) {
      const { lane, room } = all[i] as Kept
      const head = lane.head() as Candidate
      // For another head, which was not passed over, only what the lane is owed counts.
      const wasTrimmed = head !== lane.skippedHead && pool.kept.trim(lane, this.#replicasDue(pool, lane))
      // Begin again: a turn may change what is kept.
      if (wasTrimmed || (room.fits(head.estimate, head.lane.band) && this.#tryTurn(now, pool, head))) i = -1
    }
  }

  #giveOwed(now: number, pool: PoolState, side: Side): void {
    side.lookedAt = pool.roomGrowth
    for (let i = 0; i < side.owed.length; ) {
      if (this.#turnsLeft === 0) {
        side.lookedAt = NOT_LOOKED_AT
        return
      }
      const lane = side.owed[i] as PoolLane
      const head = lane.head() as Candidate
      if (this.#fitsOpen(pool, head)) {
        pool.recall(lane)
        if (this.#recalled.length === 0) this.#goneKvTokens = Number.POSITIVE_INFINITY
        this.#recalled.push(lane)
      } else if (!this.#tryTurn(now, pool, head)) i++
    }
  }

  #giveInOrder(now: number, pool: PoolState, side: Side): void {
    while (pool.open.length > 0 && this.#turnsLeft > 0) {
      const lane = side.fairness.next() as PoolLane | undefined
      if (lane === undefined) return
      const goer = this.#known.insteadOf(now, pool, side, lane) ?? (lane.head() as Candidate)
      if (this.#tryTurn(now, pool, goer)) continue
      if (side.owed.length >= this.#options.lookAheadMax) return
      pool.owe(lane)
    }
  }

  /**
   * Somebody before it took the last open room. A lane that was called back in vain is passed over as before if its head is
   * larger than what went, or a replica is to be kept for it. Among heads of one size nobody was passed over: all stay in
   * the order, where no more is counted for them than for whoever went.
   */
  #oweRecalled(pool: PoolState): void {
    const recalled = this.#recalled
    if (recalled.length === 0) return
    for (const lane of recalled) {
      const isWaiting = lane.isActive && !lane.isOwed && lane.skippedHead !== undefined
      const isDue = pool.grantedCount - lane.skippedSince >= this.#options.skipsMax
      const isLarger = isWaiting && kvTokensOf((lane.head() as Candidate).estimate) > this.#goneKvTokens
      if (isWaiting && (isDue || isLarger) && pool.open.length === 0) pool.owe(lane)
    }
    recalled.length = 0
  }

  /**
   * True when the head is not to be asked again: granted, expired, evicted because nothing is big enough any more, or
   * barred with its lane because its tenant's long prompts or lasting answers leave too little to others.
   */
  #tryTurn(now: number, pool: PoolState, head: Candidate): boolean {
    if (head.expiresAt <= now) {
      this.expire(pool, head)
      return true
    }
    const barredUntil = pool.reading.barredUntil(now, head)
    const roomlessUntil = barredUntil === undefined ? pool.lasting.barredUntil(now, head) : undefined
    head.lane.isRoomless = roomlessUntil !== undefined
    this.#book.setCounted(now, head.lane, barredUntil === undefined && roomlessUntil === undefined)
    if (barredUntil !== undefined || roomlessUntil !== undefined) {
      pool.bar(head.lane, (barredUntil ?? roomlessUntil) as number)
      return true
    }
    const room = this.#place(now, pool, head)
    if (room !== undefined) {
      if (this.#isDropped(now, pool, head))
        this.expire(pool, head, 'dropped by CoDel: the queue has stood for too long')
      else this.#grant(now, pool, head, room)
      return true
    }
    if (pool.canEverFit(head.estimate)) return false
    this.#book.dismiss(pool, head)
    pool.sync(head.lane)
    const because = 'it fits no replica that is left, even alone'
    this.#effects.push({ kind: 'evicted', ticketId: head.ticketId, code: 'fits-no-replica', because })
    return true
  }

  #isDropped(now: number, pool: PoolState, head: Candidate): boolean {
    if (this.#options.codel === undefined) return false
    let codel = this.#codels.get(pool.id)
    if (codel === undefined) {
      codel = new Codel(this.#options.codel)
      this.#codels.set(pool.id, codel)
    }
    return codel.shouldDrop(now, now - head.arrivedAt)
  }

  #grant(now: number, pool: PoolState, head: Candidate, room: ReplicaRoom): void {
    const lease = this.#book.grant(now, pool, head, room)
    this.#turnsLeft--
    this.#goneKvTokens = Math.min(this.#goneKvTokens, kvTokensOf(head.estimate))
    pool.sync(head.lane)
    pool.refreshOpen(room)
    if (head.lane.keptCount > 0) pool.kept.trim(head.lane, this.#replicasDue(pool, head.lane))
    const { because, placement } = this.#placer
    this.#effects.push({ kind: 'granted', ticketId: head.ticketId, lease, because, placement })
  }

  #fitsOpen(pool: PoolState, head: Candidate): boolean {
    for (const room of pool.open) if (room.fits(head.estimate, head.lane.band) && pool.mayUse(room, head)) return true
    return false
  }

  #mayGo(now: number, pool: PoolState, candidate: Candidate): boolean {
    if (!this.#fitsOpen(pool, candidate)) return false
    return (
      pool.reading.barredUntil(now, candidate) === undefined && pool.lasting.barredUntil(now, candidate) === undefined
    )
  }

  #place(now: number, pool: PoolState, head: Candidate): ReplicaRoom | undefined {
    const fitting = this.#fitting
    fitting.length = 0
    const { open } = pool
    const isKnownSomewhere = head.sessionHash !== undefined || (head.prefixHashes?.length ?? 0) > 0
    const enough = isKnownSomewhere || open.length <= LOOK_AT_ALL_MAX ? open.length : FITTING_ENOUGH
    const from = enough === open.length ? 0 : (pool.grantedCount * STRIDE) % open.length
    for (let i = 0; i < open.length && fitting.length < enough; i++) {
      const room = open[from + i < open.length ? from + i : from + i - open.length] as ReplicaRoom
      if (room.fits(head.estimate, head.lane.band) && pool.mayUse(room, head)) fitting.push(room)
    }
    if (head.lane.keptCount > 0) {
      for (const { lane, room } of pool.kept.all) {
        if (lane === head.lane && room.fits(head.estimate, lane.band) && pool.mayUse(room, head)) fitting.push(room)
      }
    }
    return fitting.length === 0 ? undefined : this.#placer.choose(now, head, fitting)
  }

  /** Keeps replicas for lanes that are owed a round; else one, for the head passed over first. Offline lanes get none. */
  #keepForSkipped(pool: PoolState): void {
    const { owed, fairness } = pool.foreground
    let first: PoolLane | undefined
    // Who is owed most is kept room for first: where all want the one replica, it would else be the same lane's each time.
    const byDebt = owed.length < 2 ? owed : owed.toSorted((a, b) => fairness.roundsOwedTo(b) - fairness.roundsOwedTo(a))
    for (const lane of byDebt) {
      // A lane asked before its turn, because the lanes whose turn it is fitted no better, is owed nothing yet.
      if (fairness.roundsOwedTo(lane) <= 0) lane.skippedSince = pool.grantedCount
      if (first === undefined || lane.skippedAfter < first.skippedAfter) first = lane
      let due = this.#replicasDue(pool, lane) - lane.keptCount
      while (due-- > 0 && this.#keepOneFor(pool, lane)) {}
    }
    if (first === undefined || pool.kept.all.length > 0) return
    if (pool.grantedCount - first.skippedSince >= this.#options.skipsMax) this.#keepOneFor(pool, first)
  }

  /**
   * How many replicas are to be kept for a lane by what it is owed: one, and one more for each further turn like its
   * next, as long as the lane has a ready ticket for it.
   */
  #replicasDue(pool: PoolState, lane: PoolLane): number {
    const { fairness } = pool.foreground
    const head = lane.head()
    if (head === undefined || fairness.roundsOwedTo(lane) <= this.#options.roundsOwedMax) return 0
    return Math.min(lane.readyCount, 1 + Math.floor(fairness.turnsOwedTo(lane, head.estimate.cost)))
  }

  #keepOneFor(pool: PoolState, lane: PoolLane): boolean {
    const head = lane.head() as Candidate
    let best: ReplicaRoom | undefined
    for (const room of pool.rooms.values()) {
      if (room.engine.keptBy !== undefined || !room.isReady || room.allowance < 1) continue
      if (!room.fitsAlone(head.estimate) || !pool.mayUse(room, head)) continue
      if (best === undefined || freeKvTokens(room) > freeKvTokens(best)) best = room
    }
    if (best !== undefined) pool.kept.keep(lane, best)
    return best !== undefined
  }
}

/** The replica with most free memory is free enough soonest; where memory is unknown, the one with fewest sequences. */
function freeKvTokens(room: ReplicaRoom): number {
  return Number.isFinite(room.kvTokensMax) ? room.kvTokensMax - room.ledger.kvTokens : -room.ledger.sequences
}

/**
 * Law L6, as far as the look-ahead goes: no head that could go is waiting while an open room fits it. A head that is
 * barred could not go.
 */
export function assertNoIdleRoom(pool: PoolState, lookAheadMax: number): void {
  for (const lane of pool.lanes()) {
    if (lane.readyCount === 0 || lane.barredHead !== undefined) continue
    const isCutShort = pool.sideOf(lane).owed.length >= lookAheadMax
    if (isCutShort && !lane.isOwed) continue
    const head = lane.head() as Candidate
    for (const room of pool.open) {
      const isPlaceable = room.fits(head.estimate, head.lane.band) && pool.mayUse(room, head)
      assert(!isPlaceable, 'L6: no idle room while a placeable ticket waits')
    }
  }
}
