import { assert } from '../../base/assert.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import { kvTokensOf, Ledger } from '../limits/ledger.ts'
import type { Limit } from '../limits/limit.ts'
import { isLongFor, type Reading } from './long-prompts.ts'

/**
 * How much room is left at one replica? Four things must agree: the replica is ready, this gateway's allowance is not
 * used up, KV memory holds one more, and the limit says so. An idle replica takes anything that fits it alone. A prompt
 * longer than a step waits while another such prompt is being read there (`long-prompts.ts`).
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
  /** Slots that this gateway may use, of those that several gateways share. */
  allowance = Number.POSITIVE_INFINITY
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
  }

  /** Whether anything at all might fit. */
  isOpen(): boolean {
    if (!this.isReady || this.ledger.held >= this.allowance) return false
    return this.ledger.sequences === 0 || !this.limit.isFull(this.ledger)
  }

  isIdle(): boolean {
    return this.isReady && this.ledger.sequences === 0 && this.allowance > 0
  }

  fits(estimate: Estimate): boolean {
    if (!this.isReady || this.ledger.held >= this.allowance) return false
    if (this.longCount > 0 && isLongFor(this.reading, estimate)) return false
    if (this.ledger.sequences === 0) return this.fitsAlone(estimate)
    if (this.ledger.kvTokens + kvTokensOf(estimate) > this.kvTokensMax) return false
    return this.limit.fits(this.ledger, estimate)
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
