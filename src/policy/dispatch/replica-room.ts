import { assert } from '../../base/assert.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import { type RoomAllowance, WHOLE_ROOM } from '../../domain/pool-share.ts'
import { kvTokensOf, Ledger } from '../limits/ledger.ts'
import type { Limit } from '../limits/limit.ts'
import { PartLoad, TotalLoad } from '../limits/part-load.ts'
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
 */
export class ReplicaRoom {
  readonly replica: Replica
  readonly limit: Limit
  /** KV tokens that the replica's memory holds: declared, told by the engine or guessed; Infinity when unknown. */
  kvTokensMax: number
  /** The same without a guess: only what is known to be there may keep a request from running alone. */
  kvTokensAlone: number
  /** How prompts are read here; undefined where that is unknown, and then no prompt is long. */
  readonly reading: Reading | undefined
  /** Order of addition: breaks ties the same way every time. */
  readonly ordinal: number
  /** A small number of the replica's own, given to another when the replica is removed. */
  readonly place: number
  readonly ledger: Ledger
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
  /** The replica is kept free for the heads of one lane, and closed to all others. */
  isKept = false
  /** Prompts longer than a step that are being read: at most one. */
  longCount = 0
  /** Place in the pool's list of open rooms; −1 when nothing would fit. */
  openIndex = -1
  /** Place in the pool's list of open rooms in which nothing runs; −1 when the room is closed or busy. */
  idleIndex = -1

  constructor(facts: ReplicaFacts, ordinal: number, place: number) {
    this.replica = facts.replica
    this.limit = facts.limit
    this.kvTokensMax = facts.kvTokensMax ?? Number.POSITIVE_INFINITY
    this.kvTokensAlone = this.kvTokensMax
    this.reading = facts.reading
    this.isReady = facts.isReady ?? true
    this.ordinal = ordinal
    this.place = place
    this.ledger = new Ledger()
    this.#partLoad = new PartLoad(this.ledger)
    this.#totalLoad = new TotalLoad(this.ledger)
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
    if (!this.isReady || this.ledger.held >= this.allowance) return false
    if (this.#isShared)
      return this.ledger.held === 0 || !(this.limit.isFull(this.#partLoad) || this.limit.isFull(this.#totalLoad))
    return this.ledger.sequences === 0 || !this.limit.isFull(this.ledger)
  }

  isIdle(): boolean {
    return this.isReady && this.ledger.sequences === 0 && this.allowance > 0
  }

  fits(estimate: Estimate): boolean {
    if (!this.isReady || this.ledger.held >= this.allowance) return false
    if (this.longCount > 0 && isLongFor(this.reading, estimate)) return false
    if (this.#isShared) return this.#fitsPart(estimate)
    if (this.ledger.sequences === 0) return this.fitsAlone(estimate)
    if (this.ledger.kvTokens + kvTokensOf(estimate) > this.kvTokensMax) return false
    return this.limit.fits(this.ledger, estimate)
  }

  #fitsPart(estimate: Estimate): boolean {
    const { ledger, limit } = this
    const kvTokens = kvTokensOf(estimate)
    const isWithinPart = ledger.heldKvTokens + kvTokens <= this.#shareAllowance.kvTokens
    if (ledger.held === 0)
      return (
        this.fitsAlone(estimate) &&
        (isWithinPart || ledger.kvTokens + kvTokens <= this.kvTokensMax || ledger.sequences === 0)
      )
    return isWithinPart && limit.fits(this.#partLoad, estimate) && limit.fits(this.#totalLoad, estimate)
  }

  /** The median answer must fit; a longer one that does not is a risk worth taking on an empty replica. */
  fitsAlone(estimate: Estimate): boolean {
    return estimate.promptTokens + estimate.outputTokens <= this.kvTokensAlone
  }

  assertInvariants(): void {
    this.ledger.assertInvariants()
    assert(this.longCount === 0 || this.longCount === 1, 'at most one long prompt is being read at a replica')
    assert(this.openIndex < 0 || (this.isOpen() && !this.isKept), 'an open room takes something')
    assert(this.openIndex >= 0 || !this.isOpen() || this.isKept, 'a room that takes something is open')
    assert(this.idleIndex >= 0 === (this.openIndex >= 0 && this.isIdle()), 'an open room in which nothing runs is idle')
  }
}

export interface ReplicaFacts {
  readonly replica: Replica
  readonly limit: Limit
  /** KV tokens that the replica's memory holds; absent is unlimited. */
  readonly kvTokensMax?: number
  /** How the replica reads prompts; absent where that is unknown. */
  readonly reading?: Reading | undefined
  readonly isReady?: boolean
}
