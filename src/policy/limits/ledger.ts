import { assert } from '../../base/assert.ts'
import type { Estimate } from '../../domain/plan.ts'
import { NOTHING_IN_FLIGHT, type TurnsInFlight } from '../../domain/pool-share.ts'
import { BookedRoom, beyondTokensOf } from './booked-room.ts'

/**
 * What is in flight at this replica, as far as we know right now?
 *
 * Kept synchronously by those who grant and release, because a gauge scraped every few seconds cannot stop the second
 * of two grants in one millisecond. Gauges only correct it: what an engine reports beyond what we hold belongs to
 * somebody else (another gateway, a person with curl) or was underestimated; it is added as *foreign* load, and it is
 * a lease: without a new report it lapses, so that a stale gauge cannot close a replica for ever.
 *
 * Gateways that share the replica tell each other what they have in flight there, ten times a second. That is *others'*
 * load: exact sums, some 100 ms old, and gauges then only find strangers, with a tolerance for what has changed meanwhile.
 * It lapses like a report.
 *
 * All amounts are whole numbers, so that what was added is taken off exactly.
 *
 * Worked example: we hold 10 sequences and 20,000 KV tokens; the engine reports 12 and 23,500. Foreign: 2 and 3,500.
 * Two seconds later without a report: 0 and 0.
 */
export const LEDGER_DEFAULTS = {
  /** Microseconds that a report counts. Twice the usual interval of one second: one lost report changes nothing. */
  reportValidUs: 2_000_000,
} as const

/**
 * Share of what all gateways have in flight by which a gauge may exceed it before strangers are suspected, and sequences
 * besides: gauges and the gateways' sums are of different instants.
 */
const STRANGER_RATIO = 0.1
const STRANGER_SEQUENCES = 2

/** What limits and placers look at. */
export interface Load {
  /** Sequences in flight, foreign ones included. */
  readonly sequences: number
  /** KV tokens that are booked (`booked-room.ts`), foreign ones included. */
  readonly kvTokens: number
  /** Tokens of context that the sequences have on the average of their lives: what a decode step reads. */
  readonly contextTokens: number
  /** Prompt tokens that ride along with each output token, in thousandths: Σ uncached prompt ÷ output. */
  readonly prefillMilliPerToken: number
  /** Prompt tokens of those that have not begun to answer: the queue inside the engine. */
  readonly prefillTokens: number
  /** Prompt tokens of all who ever began to answer here. Only grows: two looks tell what was read in between. */
  readonly readTokens: number
  /** Predicted time of everything in flight, if each ran as usual. */
  readonly engineUs: number
}

/** What an engine reports. Absent is unknown: then the last report counts until it lapses. */
export interface Gauges {
  /** Sequences that the engine runs or has waiting, whoever sent them. */
  readonly sequences?: number | undefined
  readonly kvTokens?: number | undefined
}

export const contextTokensOf = (estimate: Estimate): number =>
  Math.ceil(estimate.promptTokens + estimate.outputTokens / 2)

export const prefillMilliOf = (estimate: Estimate): number =>
  Math.ceil((1_000 * Math.max(0, estimate.promptTokens - estimate.cachedTokens)) / Math.max(1, estimate.outputTokens))

export const prefillTokensOf = (estimate: Estimate): number =>
  Math.ceil(Math.max(0, estimate.promptTokens - estimate.cachedTokens))

export class Ledger implements Load {
  readonly #reportValidUs: number
  readonly #booked = new BookedRoom()
  #held = 0
  #contextTokens = 0
  #prefillMilli = 0
  #prefillTokens = 0
  #engineUs = 0
  #readTokens = 0
  #foreignSequences = 0
  #foreignKvTokens = 0
  #foreignSequencesUntil = Number.NEGATIVE_INFINITY
  #foreignKvUntil = Number.NEGATIVE_INFINITY
  #others: TurnsInFlight = NOTHING_IN_FLIGHT
  #othersUntil = Number.NEGATIVE_INFINITY

  constructor(options: { readonly reportValidUs: number } = LEDGER_DEFAULTS) {
    this.#reportValidUs = options.reportValidUs
  }

  /** Sequences that we hold a lease for. */
  get held(): number {
    return this.#held
  }

  get sequences(): number {
    return this.#held + this.#foreignSequences + this.#others.sequences
  }

  get kvTokens(): number {
    return this.#booked.tokens + this.#foreignKvTokens + this.#others.kvTokens
  }

  /** The same with one more answer, and without those of ours. */
  kvTokensWith(estimate: Estimate, without?: BookedRoom): number {
    return this.heldKvTokensWith(estimate, without) + this.#foreignKvTokens + this.#others.kvTokens
  }

  /** KV tokens of what we hold, without those by which answers have grown since they were granted. */
  get leasedKvTokens(): number {
    return this.#booked.grantedTokens
  }

  /** What we hold, without what is others' or foreign. */
  get inFlight(): TurnsInFlight {
    return {
      sequences: this.#held,
      kvTokens: this.#booked.tokens,
      contextTokens: this.#contextTokens,
      prefillMilli: this.#prefillMilli,
      prefillTokens: this.#prefillTokens,
      engineUs: this.#engineUs,
    }
  }

  /** What we and the other gateways hold: nothing of it is a stranger's. */
  get known(): { readonly held: number; readonly heldContextTokens: number } {
    return {
      held: this.#held + this.#others.sequences,
      heldContextTokens: this.#contextTokens + this.#others.contextTokens,
    }
  }

  get heldKvTokens(): number {
    return this.#booked.tokens
  }

  heldKvTokensWith(estimate: Estimate, without?: BookedRoom): number {
    return this.#booked.tokensWith(estimate, without)
  }

  get heldPrefillMilli(): number {
    return this.#prefillMilli
  }

  get heldPrefillTokens(): number {
    return this.#prefillTokens
  }

  get strangerSequences(): number {
    return this.#foreignSequences
  }

  get strangerKvTokens(): number {
    return this.#foreignKvTokens
  }

  /** The context of what we hold, without what is others' or foreign. */
  get heldContextTokens(): number {
    return this.#contextTokens
  }

  get contextTokens(): number {
    return this.#contextTokens + this.#foreignKvTokens + this.#others.contextTokens
  }

  get prefillMilliPerToken(): number {
    return this.#prefillMilli + this.#others.prefillMilli
  }

  get prefillTokens(): number {
    return this.#prefillTokens + this.#others.prefillTokens
  }

  get readTokens(): number {
    return this.#readTokens
  }

  get engineUs(): number {
    return this.#engineUs + this.#others.engineUs
  }

  hold(estimate: Estimate): void {
    this.#add(estimate, 1)
    this.#booked.add(estimate)
    this.#prefillTokens += prefillTokensOf(estimate)
  }

  /** Its first token has come, or it ends without one: its prompt is no longer before the others. */
  begin(estimate: Estimate): void {
    this.#prefillTokens -= prefillTokensOf(estimate)
    this.#readTokens += prefillTokensOf(estimate)
  }

  /** An answer that has grown by `before` needs this many KV tokens more than were likely. */
  grow(estimate: Estimate, before: number, kvTokens: number): void {
    this.#booked.grow(estimate, before, kvTokens)
    this.#contextTokens += beyondTokensOf(estimate, before + kvTokens) - beyondTokensOf(estimate, before)
  }

  /** `grownKvTokens`: everything that `grow` added for it. It has begun before. */
  drop(estimate: Estimate, grownKvTokens: number): void {
    this.#add(estimate, -1)
    this.#booked.remove(estimate, grownKvTokens)
    this.#contextTokens -= beyondTokensOf(estimate, grownKvTokens)
  }

  report(now: number, { sequences, kvTokens }: Gauges): void {
    const until = now + this.#reportValidUs
    if (sequences !== undefined) {
      this.#foreignSequences = Math.max(0, Math.ceil(sequences) - this.#known(this.#held, this.#others.sequences))
      this.#foreignSequencesUntil = until
    }
    if (kvTokens !== undefined) {
      this.#foreignKvTokens = Math.max(0, Math.ceil(kvTokens) - this.#known(this.#booked.tokens, this.#others.kvTokens))
      this.#foreignKvUntil = until
    }
  }

  /** What the other gateways say that they have in flight here. It counts until they say otherwise, or it lapses. */
  hear(now: number, others: TurnsInFlight): void {
    this.#others = others
    this.#othersUntil = now + this.#reportValidUs
  }

  /** What a gauge must exceed before strangers are suspected. A gateway alone knows exactly what it holds. */
  #known(own: number, others: number): number {
    if (this.#othersUntil === Number.NEGATIVE_INFINITY) return own
    const known = own + others
    return known + Math.max(STRANGER_SEQUENCES, Math.ceil(STRANGER_RATIO * known))
  }

  /** When foreign load lapses next; undefined when there is none. */
  foreignUntil(): number | undefined {
    const foreignUntil = this.#strangersUntil()
    if (this.#others === NOTHING_IN_FLIGHT) return foreignUntil
    return Math.min(this.#othersUntil, foreignUntil ?? Number.POSITIVE_INFINITY)
  }

  #strangersUntil(): number | undefined {
    if (this.#foreignSequences === 0) return this.#foreignKvTokens === 0 ? undefined : this.#foreignKvUntil
    if (this.#foreignKvTokens === 0) return this.#foreignSequencesUntil
    return Math.min(this.#foreignSequencesUntil, this.#foreignKvUntil)
  }

  /** Forgets what was reported too long ago. True when that made room. */
  lapse(now: number): boolean {
    const until = this.foreignUntil()
    if (until === undefined || now < until) return false
    if (now >= this.#foreignSequencesUntil) this.#foreignSequences = 0
    if (now >= this.#foreignKvUntil) this.#foreignKvTokens = 0
    if (now >= this.#othersUntil) this.#others = NOTHING_IN_FLIGHT
    return true
  }

  #add(estimate: Estimate, sign: 1 | -1): void {
    this.#held += sign
    this.#contextTokens += sign * contextTokensOf(estimate)
    this.#prefillMilli += sign * prefillMilliOf(estimate)
    this.#engineUs += sign * Math.ceil(estimate.engineUs)
  }

  /** Another ledger with the same amounts, which changes by itself from now on. */
  copy(): Ledger {
    const copy = new Ledger({ reportValidUs: this.#reportValidUs })
    copy.#held = this.#held
    copy.#booked.copyFrom(this.#booked)
    copy.#contextTokens = this.#contextTokens
    copy.#prefillMilli = this.#prefillMilli
    copy.#prefillTokens = this.#prefillTokens
    copy.#engineUs = this.#engineUs
    copy.#readTokens = this.#readTokens
    copy.#foreignSequences = this.#foreignSequences
    copy.#foreignKvTokens = this.#foreignKvTokens
    copy.#foreignSequencesUntil = this.#foreignSequencesUntil
    copy.#foreignKvUntil = this.#foreignKvUntil
    copy.#others = this.#others
    copy.#othersUntil = this.#othersUntil
    return copy
  }

  assertInvariants(): void {
    assert(this.#held >= 0, 'a ledger never owes')
    this.#booked.assertInvariants()
    const rest = this.#contextTokens + this.#prefillMilli + this.#prefillTokens + this.#engineUs
    assert(this.#held > 0 || (rest === 0 && this.#booked.isEmpty), 'a ledger without leases is empty')
  }
}
