import type { Instant } from '../../base/clock.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import { Backlog, type Newcomer } from './backlog.ts'
import type { ExpectedWork } from './predicted-wait.ts'
import { ReturnLane, ShowRatio } from './return-lane.ts'

/**
 * Who was told to come back, when, and will there be room?
 *
 * A time to come back is true only if somebody keeps it: under sustained overload those who come first take all the room
 * there is, and who comes back when told finds the queue as full as before. So a refusal gives a slot: a claim on the room
 * of its own tenant at that time. A claim is work that is expected, not room that stands empty. From `leadUs` before its
 * time on it counts as if it waited already, under fair sharing (`backlog.ts`): newcomers are judged as if it stood before
 * them. A replica that is idle or has room takes newcomers all the same, and whoever comes on his slot is judged by what
 * really waits.
 *
 * Claims count times the share of those who did come, learned per lane, so clients that never come back take no room from
 * those who are there; habits of a lane are remembered when it is empty (`return-lane.ts`). They may have `share` of what
 * the tenant is served, and lie within `horizonUs`: the slot after K claimed cost is due when a lane with K ÷ share more
 * before it would be drained, and never sooner after the one before than the lane is served: two who come at once to a
 * lane that has one turn in a second break the slot of the second. Who would have to wait longer gets none, and is told
 * so. So is who asks for much more than is usually admitted: the room of one large request would be several answers less.
 *
 * A lane is one tenant's band of one model. A slot is kept under a name, made of lane, key and body, at the gateway that
 * gave it. Bounds: `claimsMax` claims and `lanesMax` lanes in all; a claim ends when it is taken up or `graceUs` after its
 * time (the header that most clients read has whole seconds).
 *
 * Example: share 0.3, cost 300, lane served 0.1 a microsecond: slots of one lane are 10 ms apart.
 */
export const RETURN_SLOT_DEFAULTS = {
  /** Of what a tenant is served, for those who come back. 0: no slots, and times that nobody keeps. */
  share: 0.3,
  /** A minute: clients wait no longer (`gateway/error-words.ts`). */
  horizonUs: 58_000_000,
  /** So long before its time a claim begins to count; no slot is sooner. */
  leadUs: 2_250_000,
  graceUs: 1_500_000,
  claimsMax: 16_384,
  /** Of one lane, and of one body: who sends the same ten times holds one place after the other. */
  laneClaimsMax: 1_024,
  sameClaimsMax: 8,
  /** Lanes whose habits are remembered; while each of them has claims, no others get a slot. */
  lanesMax: 4_096,
  /** Times the usual cost of what is admitted of the lane. */
  costRatioMax: 1.2,
  /** Weight of the newest in the share of those who came, and in the usual cost. */
  memory: 1 / 16,
  /** Of what a lane is served in a microsecond: some turns of a tenant that has one in a second. */
  paceMemoryUs: 10_000_000,
  /** While nothing is known of anybody: most clients do not come back, and those who do are soon believed. */
  showRatioFirst: 0.1,
  /** A lane whose clients never came is still believed a little, or it would never be found out that they do now. */
  showRatioMin: 0.05,
  /** From here on most who have a slot come. */
  showRatioBelieved: 0.5,
}

export type ReturnSlotOptions = typeof RETURN_SLOT_DEFAULTS

export interface ReturnSlot {
  readonly dueAt: Instant
  readonly cost: number
}

export interface SlotQuestion extends Newcomer {
  readonly poolId: string
  readonly laneId: string
  readonly name: string
  /** When a newcomer behind all who have a slot would be in time, from now. */
  readonly afterUs: number
}

/**
 * `kept`: came in time and was admitted; `broken`: came in time and was not; `early`: was admitted before; `missed`: did
 * not come.
 */
export type SlotCounts = Record<'given' | 'none' | SlotEnd, number>
type SlotEnd = 'kept' | 'broken' | 'early' | 'missed'

export class ReturnSlots {
  readonly #options: ReturnSlotOptions
  readonly #pools = new Map<string, PoolReturns>()
  readonly #lanes = new Map<string, ReturnLane>()
  /** Of all lanes: what is believed of those that have no habits yet. */
  readonly #everybody: ShowRatio
  /** By name, in the order of their times: the same body may have been refused several times. */
  readonly #byName = new Map<string, Claim[]>()
  /** By when each begins to count or, if it does, by when its time is over. */
  readonly #next = new IndexedHeap<Claim>()
  readonly #counts: SlotCounts = { given: 0, none: 0, kept: 0, broken: 0, early: 0, missed: 0 }
  #sequence = 0

  constructor(options: Partial<ReturnSlotOptions> = {}) {
    this.#options = { ...RETURN_SLOT_DEFAULTS, ...options }
    this.#everybody = new ShowRatio(this.#options.memory, this.#options.showRatioFirst)
  }

  get isOff(): boolean {
    return this.#options.share === 0
  }

  /** Since the start. */
  get counts(): Readonly<SlotCounts> {
    return this.#counts
  }

  /** Claims that nobody has taken up yet. */
  get count(): number {
    return this.#next.size
  }

  get laneCount(): number {
    return this.#lanes.size
  }

  /** Does anybody of this lane have a slot? */
  hasClaims(laneId: string): boolean {
    return (this.#lanes.get(laneId)?.claimCount ?? 0) > 0
  }

  /** Do most who are given a slot of this lane come? */
  isBelieved(laneId: string): boolean {
    return (this.#lanes.get(laneId)?.shows?.ratio ?? 0) > this.#options.showRatioBelieved
  }

  /** What is expected at this pool about now and goes before the newcomer; undefined where nobody is expected. */
  expected(now: Instant, poolId: string, newcomer: Newcomer): ExpectedWork | undefined {
    if (this.#next.size === 0) return undefined
    this.#advance(now)
    const soon = this.#pools.get(poolId)?.soon
    return soon === undefined || soon.total <= 0 ? undefined : before(now, soon, newcomer, 1)
  }

  /** All that is claimed and goes before the newcomer, as it counts for the time of his slot. */
  claimed(now: Instant, poolId: string, newcomer: Newcomer): ExpectedWork {
    this.#advance(now)
    const pool = this.#pools.get(poolId)
    return pool === undefined ? NOTHING_EXPECTED : before(now, pool.claimed, newcomer, 1 / this.#options.share)
  }

  /** A slot `afterUs` from now or later, in the order in which the lane gives them; undefined when there is none. */
  give(now: Instant, asked: SlotQuestion): ReturnSlot | undefined {
    this.#advance(now)
    const lane = this.#laneOf(asked.laneId, asked.cost)
    // Sooner than its lead nobody would have been held back for it.
    const soonestAt = now + Math.max(this.#options.leadUs, asked.afterUs)
    const dueAt = Math.ceil(Math.max(soonestAt, lane?.nextDueAt(now) ?? 0))
    if (lane === undefined || !this.#isPossible(now, dueAt, asked, lane)) {
      this.#counts.none++
      return undefined
    }
    const { poolId, laneId, name, share, band } = asked
    const own = { poolId, laneId, name, share, band, cost: whole(asked.cost) }
    const claim: Claim = { ...own, dueAt, counted: undefined, heapIndex: -1, sequence: this.#sequence++ }
    this.#join(now, lane, claim)
    this.#counts.given++
    return claim
  }

  #isPossible(now: Instant, dueAt: Instant, { name, cost }: SlotQuestion, lane: ReturnLane): boolean {
    const { horizonUs, claimsMax, laneClaimsMax, sameClaimsMax, costRatioMax } = this.#options
    // So written, a time or a cost that is no number is refused, too.
    if (this.isOff || !(dueAt <= now + horizonUs && cost <= costRatioMax * lane.usualCost)) return false
    if (this.count >= claimsMax || lane.claimCount >= laneClaimsMax) return false
    return (this.#byName.get(name)?.length ?? 0) < sameClaimsMax
  }

  /** The slot under this name whose time it is; undefined for strangers, and for who comes too early or too late. */
  dueFor(now: Instant, name: string): ReturnSlot | undefined {
    this.#advance(now)
    const claim = this.#byName.get(name)?.[0]
    return claim !== undefined && claim.dueAt <= now ? claim : undefined
  }

  /** The first slot under this name is over: who held it was here, in time if `isDue`. */
  takeUp(name: string, isDue: boolean, isAdmitted: boolean): void {
    const claim = this.#byName.get(name)?.[0]
    if (claim !== undefined) this.#end(claim, !isDue ? 'early' : isAdmitted ? 'kept' : 'broken')
  }

  /** So much is usual in this lane, and so often. */
  admitted(now: Instant, laneId: string, cost: number): void {
    this.#laneOf(laneId, cost)?.admitted(now, cost)
  }

  /** The oldest lane that nobody has a slot of is forgotten for a new one; undefined while none is found. */
  #laneOf(laneId: string, usualCost: number): ReturnLane | undefined {
    const known = this.#lanes.get(laneId)
    if (known !== undefined) return known
    if (this.#lanes.size >= this.#options.lanesMax && !this.#forgetOne()) return undefined
    const lane = new ReturnLane(this.#options, usualCost)
    this.#lanes.set(laneId, lane)
    return lane
  }

  #forgetOne(): boolean {
    let looks = 0
    for (const [id, lane] of this.#lanes) {
      this.#lanes.delete(id)
      if (lane.claimCount === 0) return true
      this.#lanes.set(id, lane)
      if (++looks === LOOKS_MAX) break
    }
    return false
  }

  #join(now: Instant, lane: ReturnLane, claim: Claim): void {
    const pool = this.#pools.get(claim.poolId) ?? { claimed: new Backlog(), soon: new Backlog() }
    this.#pools.set(claim.poolId, pool)
    pool.claimed.join(now, claim)
    this.#next.push(claim, claim.dueAt - this.#options.leadUs)
    lane.claimed(claim)
    const same = this.#byName.get(claim.name)
    if (same === undefined) this.#byName.set(claim.name, [claim])
    else same.push(claim)
  }

  /** Claims whose time comes begin to count, those whose time is over end. */
  #advance(now: Instant): void {
    for (let at = this.#next.peekKey(); at !== undefined && at <= now; at = this.#next.peekKey()) {
      const claim = this.#next.peek() as Claim
      if (claim.counted !== undefined) this.#end(claim, 'missed')
      else this.#count(now, claim)
    }
  }

  #count(now: Instant, claim: Claim): void {
    const { poolId, share, band, cost, laneId, dueAt } = claim
    claim.counted = { share, band, cost: whole(cost * this.#showRatioOf(laneId)) }
    this.#pools.get(poolId)?.soon.join(now, claim.counted)
    this.#next.update(claim, dueAt + this.#options.graceUs)
  }

  #end(claim: Claim, end: SlotEnd): void {
    this.#counts[end]++
    this.#next.remove(claim)
    const pool = this.#pools.get(claim.poolId)
    pool?.claimed.leave(claim, undefined)
    if (claim.counted !== undefined) pool?.soon.leave(claim.counted, undefined)
    if (pool?.claimed.total === 0) this.#pools.delete(claim.poolId)
    const same = this.#byName.get(claim.name) ?? []
    same.splice(same.indexOf(claim), 1)
    if (same.length === 0) this.#byName.delete(claim.name)
    this.#learn(claim.laneId, end !== 'missed')
  }

  #learn(laneId: string, hasCome: boolean): void {
    const lane = this.#lanes.get(laneId)
    if (lane === undefined) return
    lane.claimCount--
    lane.shows ??= new ShowRatio(this.#options.memory, this.#everybody.ratio)
    lane.shows.observe(hasCome)
    this.#everybody.observe(hasCome)
  }

  #showRatioOf(laneId: string): number {
    return Math.max(this.#options.showRatioMin, (this.#lanes.get(laneId)?.shows ?? this.#everybody).ratio)
  }
}

/** Lanes that are looked at for one that may go. */
const LOOKS_MAX = 8

/** Whole numbers leave nothing behind when they are taken away again. */
const whole = (cost: number): number => Math.max(1, Math.round(cost))

const NOTHING_EXPECTED: ExpectedWork = { cost: 0, ownCost: 0 }

function before(now: Instant, backlog: Backlog, newcomer: Newcomer, factor: number): ExpectedWork {
  return { cost: factor * backlog.aheadOf(now, newcomer), ownCost: factor * backlog.ofTenant(newcomer.share) }
}

interface PoolReturns {
  /** All claims, and those that are due about now. */
  readonly claimed: Backlog
  readonly soon: Backlog
}

interface Claim extends ReturnSlot, Newcomer {
  readonly poolId: string
  readonly laneId: string
  readonly name: string
  /** What it counts for in its pool; undefined until its time is near. */
  counted: Newcomer | undefined
  heapIndex: number
  readonly sequence: number
}
