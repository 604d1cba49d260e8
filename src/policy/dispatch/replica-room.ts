import { assert } from '../../base/assert.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import { type RoomAllowance, type TurnsInFlight, WHOLE_ROOM } from '../../domain/pool-share.ts'
import type { Band } from '../../domain/tenant.ts'
import { kvTokensOf } from '../limits/booked-room.ts'
import { Ledger } from '../limits/ledger.ts'
import type { Limit, OfflineTerms } from '../limits/limit.ts'
import { PartLoad, TotalLoad } from '../limits/part-load.ts'
import { HeldTurns, relieved } from '../limits/relieved-load.ts'
import { EngineRoom } from './engine-room.ts'
import { isLongFor, type Reading } from './long-prompts.ts'

/**
 * How much room is left at one replica? Four things must agree: the replica is ready, this gateway's allowance is not
 * used up, KV memory holds one more, and the limit says so. An idle replica takes anything that fits it alone. A prompt
 * longer than a step waits while another such prompt is being read there (`long-prompts.ts`).
 *
 * There are two allowances, and the smaller counts: health's (a replica that warms up or is on trial) and sharing's (the
 * slots and KV tokens that this gateway has of a replica that several use). A gateway with a part of a replica keeps its own
 * turns within that part of the limit, and all turns, as last told, within the limit. Its first turn there needs a slot and
 * is not held against the limit, as at an idle replica: without that rule a small part would never run anything. A first
 * turn larger than the gateway's KV part runs if the memory has room for it, as last told.
 *
 * Offline turns have bounds of their own beside those of all (`OfflineTerms`): a share of the memory, and a time per token.
 */
export class ReplicaRoom {
  readonly replica: Replica
  /** The engine behind the replica, which other pools may have, too. */
  readonly engine: EngineRoom
  /** How prompts are read here; undefined where that is unknown, and then no prompt is long. */
  readonly reading: Reading | undefined
  /** Order of addition: breaks ties the same way every time. */
  readonly ordinal: number
  /** A small number of the replica's own, given to another when the replica is removed. */
  readonly place: number
  /** Everything in flight at the engine. Set by the engine, when another pool joins it. */
  ledger: Ledger
  /** What this pool's leases hold here: the engine's own ledger, unless another pool has the engine, too. */
  readonly own: Ledger
  readonly #offline: OfflineTerms | undefined
  isReady: boolean
  /** Turns that this gateway may have here: the smaller of health's and sharing's allowance. */
  allowance = Number.POSITIVE_INFINITY
  /** This gateway's part of the replica, 0 … 1; 1 where it has the replica to itself. */
  part = 1
  #isShared = false
  #healthAllowance = Number.POSITIVE_INFINITY
  #shareAllowance: RoomAllowance = WHOLE_ROOM
  readonly #partLoad: PartLoad
  readonly #totalLoad: TotalLoad
  /** Place in the pool's list of open rooms; −1 when nothing would fit. */
  openIndex = -1
  /** Place in the pool's list of open rooms in which nothing runs; −1 when the room is closed or busy. */
  idleIndex = -1

  /** The first room of an engine keeps its own books in the engine's ledger; those that come later have theirs. */
  constructor(facts: ReplicaFacts, ordinal: number, place: number, engine = new EngineRoom(facts)) {
    this.replica = facts.replica
    this.engine = engine
    this.reading = facts.reading
    this.isReady = facts.isReady ?? true
    this.ordinal = ordinal
    this.place = place
    this.#offline = facts.offline
    this.ledger = engine.ledger
    this.own = engine.isUnused ? engine.ledger : new Ledger()
    this.#partLoad = new PartLoad(this.own)
    this.#totalLoad = new TotalLoad(this)
  }

  get limit(): Limit {
    return this.engine.limit
  }

  get kvTokensMax(): number {
    return this.engine.kvTokensMax
  }

  get kvTokensAlone(): number {
    return this.engine.kvTokensAlone
  }

  /** The engine is kept free for the heads of one lane of this pool, and closed to all others. */
  get isKept(): boolean {
    return this.engine.keptBy === this
  }

  /** Health says how many turns at once. */
  allow(turns: number): void {
    this.#healthAllowance = turns
    this.allowance = Math.min(turns, this.#shareAllowance.sequences)
  }

  /** Sharing says what part of the room is this gateway's. */
  share(allowance: RoomAllowance): void {
    this.#shareAllowance = allowance
    this.#isShared = allowance.sequences !== Number.POSITIVE_INFINITY
    this.part = this.#isShared ? Math.min(1, allowance.sequences / this.limit.view().sequencesMax) : 1
    this.#partLoad.part = this.part
    this.allow(this.#healthAllowance)
  }

  get shareAllowance(): RoomAllowance {
    return this.#shareAllowance
  }

  /** Whether anything at all might fit. */
  isOpen(): boolean {
    if (!this.isReady || this.#isUsedUp()) return false
    if (this.#isShared)
      return this.ledger.held === 0 || !(this.limit.isFull(this.#partLoad) || this.limit.isFull(this.#totalLoad))
    return this.ledger.sequences === 0 || !this.limit.isFull(this.ledger)
  }

  isIdle(): boolean {
    return this.isReady && this.ledger.sequences === 0 && this.allowance > 0
  }

  fits(estimate: Estimate, band: Band): boolean {
    if (!this.isReady || this.#isUsedUp()) return false
    if (this.engine.longCount > 0 && isLongFor(this.reading, estimate)) return false
    // What is being called off makes room for somebody else.
    if (band === 'offline' && this.engine.yieldingCount > 0) return false
    const offline = band === 'offline' ? this.#offline : undefined
    if (this.#isShared) return this.#fitsPart(estimate, offline)
    if (this.ledger.sequences === 0) return this.fitsAlone(estimate)
    if (this.ledger.kvTokensWith(estimate) > this.kvTokensMax) return false
    if (offline !== undefined) {
      const offlineTokens = this.engine.offlineKvTokens + kvTokensOf(estimate)
      if (offlineTokens > offline.kvShare * this.kvTokensMax) return false
    }
    return this.limit.fits(this.ledger, estimate, offline)
  }

  /** Health counts what the engine holds of all pools; this gateway's part of the room is one pool's. */
  #isUsedUp(): boolean {
    return this.own.held >= this.allowance || (this.own !== this.ledger && this.ledger.held >= this.#healthAllowance)
  }

  /**
   * Whether an online turn would fit if these, all of them of this gateway, were not here. Where another pool has the
   * engine, too, they may be that pool's: then they are not taken off this pool's part of it.
   */
  fitsWithout(estimate: Estimate, off: HeldTurns): boolean {
    const { ledger, own, limit } = this
    const ownOff = own === ledger ? off : NO_TURNS
    const held = ledger.held - off.count
    if (!this.isReady || held >= this.#healthAllowance || own.held - ownOff.count >= this.allowance) return false
    if (this.engine.longCount > 0 && isLongFor(this.reading, estimate)) return false
    const isLast = this.#isShared ? held === 0 : ledger.sequences === off.count
    if (isLast) return this.fitsAlone(estimate)
    if (!this.#isShared)
      return (
        ledger.kvTokensWith(estimate, off.booked) <= this.kvTokensMax && limit.fits(relieved(ledger, off), estimate)
      )
    return (
      own.heldKvTokensWith(estimate, ownOff.booked) <= this.#shareAllowance.kvTokens &&
      limit.fits(relieved(this.#partLoad, ownOff, this.part), estimate) &&
      limit.fits(relieved(this.#totalLoad, off), estimate)
    )
  }

  hold(estimate: Estimate, band: Band): void {
    this.ledger.hold(estimate)
    if (this.own !== this.ledger) this.own.hold(estimate)
    if (band === 'offline') this.engine.offlineKvTokens += kvTokensOf(estimate)
  }

  /** The turn's first token has come, or it ends without one. */
  begin(estimate: Estimate): void {
    this.ledger.begin(estimate)
    if (this.own !== this.ledger) this.own.begin(estimate)
  }

  /** An answer that has grown by `before` needs this many KV tokens more. */
  grow(estimate: Estimate, before: number, kvTokens: number): void {
    this.ledger.grow(estimate, before, kvTokens)
    if (this.own !== this.ledger) this.own.grow(estimate, before, kvTokens)
  }

  /** What other gateways have in flight here of this pool. */
  hear(now: number, others: TurnsInFlight): void {
    if (this.engine.isCommon) this.engine.hear(now, this, others)
    else this.ledger.hear(now, others)
  }

  drop(estimate: Estimate, band: Band, grownKvTokens: number): void {
    this.ledger.drop(estimate, grownKvTokens)
    if (this.own !== this.ledger) this.own.drop(estimate, grownKvTokens)
    if (band === 'offline') this.engine.offlineKvTokens -= kvTokensOf(estimate)
  }

  #fitsPart(estimate: Estimate, offline: OfflineTerms | undefined): boolean {
    const { ledger, own, limit } = this
    const isWithinPart = own.heldKvTokensWith(estimate) <= this.#shareAllowance.kvTokens
    const isWithinMemory = ledger.kvTokensWith(estimate) <= this.kvTokensMax
    if (ledger.held === 0) return this.fitsAlone(estimate) && (isWithinPart || isWithinMemory || ledger.sequences === 0)
    // The parts of one pool are within the memory; those of several pools together need not be.
    if (own !== ledger && !isWithinMemory) return false
    const share = this.#shareAllowance.kvTokens * (offline?.kvShare ?? 1)
    if (offline !== undefined && this.engine.offlineKvTokens + kvTokensOf(estimate) > share) return false
    return (
      isWithinPart && limit.fits(this.#partLoad, estimate, offline) && limit.fits(this.#totalLoad, estimate, offline)
    )
  }

  /** The median answer must fit; a longer one that does not is a risk worth taking on an empty replica. */
  fitsAlone(estimate: Estimate): boolean {
    return estimate.promptTokens + estimate.outputTokens <= this.kvTokensAlone
  }

  assertInvariants(): void {
    this.engine.assertInvariants()
    if (this.own !== this.ledger) this.own.assertInvariants()
    const isKept = this.engine.keptBy !== undefined
    assert(this.ledger === this.engine.ledger, 'a room counts what its engine holds')
    assert(this.openIndex < 0 || (this.isOpen() && !isKept), 'an open room takes something')
    assert(this.openIndex >= 0 || !this.isOpen() || isKept, 'a room that takes something is open')
    assert(this.idleIndex >= 0 === (this.openIndex >= 0 && this.isIdle()), 'an open room in which nothing runs is idle')
  }
}

const NO_TURNS = new HeldTurns()

export interface ReplicaFacts {
  readonly replica: Replica
  readonly limit: Limit
  /** KV tokens that the replica's memory holds; absent is unlimited. */
  readonly kvTokensMax?: number
  /** How the replica reads prompts; absent where that is unknown. */
  readonly reading?: Reading | undefined
  /** Bounds of offline turns beside those of all; absent: none. */
  readonly offline?: OfflineTerms | undefined
  readonly isReady?: boolean
}
