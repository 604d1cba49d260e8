import { isSooner } from '../fairness/lane.ts'
import type { Candidate, PoolLane } from './candidate.ts'
import type { Placer } from './placer.ts'
import type { PoolState, Side } from './pool-state.ts'

/**
 * Who should have the turn, when the replica that has room does not know the prompt of the one whose turn it is?
 *
 * Where every replica is full, room opens at one replica at a time, and a turn given strictly in order is a turn at a
 * replica by chance: every prompt is read everywhere, memory holds nothing long enough to be found again, reading takes
 * all the time there is, and so every replica stays full. That state keeps itself up at a load which a fleet that knows
 * its prompts carries with ease (a metastable failure: Bronson et al., HotOS 2021). The way out is that of delay
 * scheduling (Zaharia et al., EuroSys 2010): who would have to be read again here lets those go first who would not.
 *
 *     room at b:   lane t1 [ p(a) · q(b) · r(a) ]     p is known at a, q at b: q goes, and p waits for a
 *                  lane t2 [ s(b) ]                   had t1 only p and r, s would go, and is charged as always
 *
 * First who is known here, then who is known nowhere and must be read by somebody, both of the lane whose turn it is;
 * then the same of the next lanes. If there is nobody, it is the head's turn: no room stays idle for it (law L6).
 *
 * Bounds: `LOOKED_AT_MAX` tickets in `LANES_MAX` lanes for one turn. A head lets at most `LET_BY_MAX` turns go by, and
 * none in the last quarter of its time to wait; so what L7 allows grows by as many turns of the others.
 *
 * Worked example: 200 beginnings of 6,000 tokens, 30 requests a second, four replicas, cold: see scenario `cold-prefix`.
 */
const LOOKED_AT_MAX = 32
const LANES_MAX = 8
const LET_BY_MAX = 16
/** Part of its time to wait that a head keeps for itself. */
const KEPT_RATIO = 0.25

export class KnownPrompts {
  readonly #placer: Placer
  readonly #mayGo: (now: number, pool: PoolState, candidate: Candidate) => boolean
  #leftToLookAt = 0

  /** `mayGo`: it fits an open replica, and its tenant's prompts and answers leave enough to others. */
  constructor(placer: Placer, mayGo: (now: number, pool: PoolState, candidate: Candidate) => boolean) {
    this.#placer = placer
    this.#mayGo = mayGo
  }

  /** The ticket that should go instead of the lane's head, of this lane or of one behind it; undefined: the head. */
  insteadOf(now: number, pool: PoolState, side: Side, lane: PoolLane): Candidate | undefined {
    const head = lane.head() as Candidate
    if (!this.#letsBy(now, pool, head)) return undefined
    this.#leftToLookAt = LOOKED_AT_MAX
    const other = this.#among(now, pool, lane) ?? this.#behind(now, pool, side, lane)
    if (other !== undefined) head.letByCount++
    return other
  }

  #letsBy(now: number, pool: PoolState, head: Candidate): boolean {
    if (this.#placer.whereKnown === undefined || (head.prefixHashes?.length ?? 0) === 0) return false
    if (head.letByCount >= LET_BY_MAX || pool.queuedCount < 2) return false
    if (head.expiresAt - now < KEPT_RATIO * (head.expiresAt - head.arrivedAt)) return false
    return this.#placer.whereKnown(now, head, pool.open) === 'elsewhere' && this.#mayGo(now, pool, head)
  }

  /** Of a lane's tickets near its head the soonest that is known here; else the soonest that is known nowhere. */
  #among(now: number, pool: PoolState, lane: PoolLane): Candidate | undefined {
    let known: Candidate | undefined
    let unknown: Candidate | undefined
    for (const waiter of lane.front()) {
      if (this.#leftToLookAt-- <= 0) break
      const other = waiter as Candidate
      if (other.expiresAt <= now || (known !== undefined && isSooner(known, other))) continue
      const where = this.#placer.whereKnown?.(now, other, pool.open)
      if (where === 'elsewhere' || !this.#mayGo(now, pool, other)) continue
      if (where === 'here') known = other
      else if (unknown === undefined || isSooner(other, unknown)) unknown = other
    }
    return known ?? unknown
  }

  /** The lanes whose turn comes next stand aside while they are looked at, and lose nothing by it. */
  #behind(now: number, pool: PoolState, side: Side, first: PoolLane): Candidate | undefined {
    const { fairness } = side
    const passed: PoolLane[] = []
    let found: Candidate | undefined
    let lane: PoolLane | undefined = first
    while (found === undefined && passed.length < LANES_MAX && this.#leftToLookAt > 0) {
      fairness.pass(lane)
      passed.push(lane)
      lane = fairness.next() as PoolLane | undefined
      if (lane === undefined) break
      found = this.#among(now, pool, lane)
    }
    for (const one of passed) fairness.recall(one)
    return found
  }
}
