import type { Instant } from '../../base/clock.ts'
import type { Permits } from '../budgets/permits.ts'
import type { RoomAnswer, RoomAsk } from './room-grants.ts'
import type { Membership } from './shard-clock.ts'
import type { SharingOptions } from './slice-book.ts'

/**
 * How many requests of a tenant may run at once here, of a number that several gateways share?
 *
 * Permits are whole and come back, so they are slots of a room (`room-grants.ts`), not drops of a bucket: a gateway says how
 * many it holds and would like, and is granted what the others neither hold nor were granted. Over all gateways no more than
 * the limit run at once. The exceptions are credit: before the first answer, and where a silent gateway was granted
 * nothing, it uses S = limit ÷ 2N, at least one.
 *
 *     wanted = most held of late + a quarter, at least 2 more      doubled while requests are refused
 *
 * Gateways tell each other of what they are short. Where others are short, nobody wants more than limit ÷ those who are, and
 * a gateway that holds nothing lets go: so places move to where requests are, as running ones end.
 *
 * It knows no clock and sends nothing; `lifecycle/sharing/renewals.ts` carries its calls. Deliberately not: no order between
 * requests of two gateways; a freed place may go to either.
 *
 * Laws: L4 for the fleet, with at most S too many for each gateway that joins or is cut off. Bounds: `accountsMax` permits a
 * call, the rest in the next; SHORT_NAMES_MAX names are told.
 *
 * Example: limit 12, 3 gateways: S = 2. A runs 2 on credit, asks for 4 and gets 4. B asks for 12 and gets 8.
 */
export interface PermitCall {
  readonly sentAt: Instant
  readonly member: Membership
  readonly told: { readonly topic: string; readonly text: string }
  readonly asks: readonly RoomAsk[]
}

/** Memory of the most that was held: requests end within seconds, and a place that is let go too soon is missed at once. */
const PEAK_MEMORY_US = 1_000_000
/** A refusal, or another gateway's, counts for this long: a few renewals. */
const SHORT_US = 500_000
/** Names that a gateway tells the others: enough to move places, little enough to send every 50 ms. */
const SHORT_NAMES_MAX = 64
/** After an answer that gave too little, a request is refused without asking again until the next renewal. */
const ASK_AGAIN_US = 50_000

export class PermitBook {
  readonly #id: string
  readonly #options: SharingOptions
  readonly #listed = new Map<string, LeasedPermits>()
  readonly #asked = new WeakMap<PermitCall, readonly LeasedPermits[]>()
  #told = 0
  #epoch = ''
  #heardAt: Instant
  #calledAt = Number.NEGATIVE_INFINITY
  #inFlight: PermitCall | undefined

  constructor(now: Instant, id: string, options: SharingOptions) {
    this.#id = id
    this.#options = options
    this.#heardAt = now
  }

  permits(now: Instant, name: string, limit: number): LeasedPermits {
    return new LeasedPermits(now, name, limit, this)
  }

  get gatewayCount(): number {
    return this.#told === 0 ? this.#options.gatewaysMax : this.#told
  }

  /** No call of the last while was answered. Without permits in use there are no calls, and nothing is known. */
  isSilent(now: Instant): boolean {
    return this.#told > 0 && now - this.#heardAt > this.#options.silentUs && this.#listed.size > 0
  }

  list(permits: LeasedPermits): void {
    if (this.#listed.size === 0) this.#heardAt = Math.max(this.#heardAt, permits.usedAt)
    this.#listed.set(permits.name, permits)
  }

  /** The call that should be made now; it must be answered or given up through `answered`. */
  due(now: Instant): PermitCall | undefined {
    const { callUs, beatUs, accountsMax, ttlMs, forgetMs } = this.#options
    if (this.#listed.size === 0) return undefined
    if (this.#inFlight !== undefined && now - this.#inFlight.sentAt < callUs) return undefined
    const due: LeasedPermits[] = []
    for (const permits of this.#listed.values()) {
      if (due.length < accountsMax && permits.isDue(now)) due.push(permits)
    }
    if (due.length === 0 && now - this.#calledAt < beatUs) return undefined
    this.#calledAt = now
    const call: PermitCall = {
      sentAt: now,
      member: { id: this.#id, epoch: this.#epoch, told: this.#told, ttlMs, forgetMs },
      told: { topic: 'permits', text: this.#shortNames(now) },
      asks: due.map((permits) => permits.ask(now)),
    }
    this.#asked.set(call, due)
    this.#inFlight = call
    return call
  }

  /** Undefined: there was no answer. */
  answered(now: Instant, call: PermitCall, answer: RoomAnswer | undefined): void {
    if (this.#inFlight === call) this.#inFlight = undefined
    if (answer === undefined) return
    if (call.sentAt >= this.#heardAt) {
      this.#heardAt = call.sentAt
      this.#told = answer.gatewayCount
      this.#epoch = answer.epoch
    }
    for (const [i, permits] of (this.#asked.get(call) ?? []).entries()) {
      permits.answered(now, call.sentAt, answer.granted[i] ?? -1)
      if (permits.isIdle(now)) this.#listed.delete(permits.name)
    }
    const shortBy = new Map<string, number>()
    for (const text of answer.reports.values())
      for (const name of text.split('\n')) if (name !== '') shortBy.set(name, (shortBy.get(name) ?? 0) + 1)
    for (const [name, count] of shortBy) this.#listed.get(name)?.othersAreShort(now, count)
  }

  #shortNames(now: Instant): string {
    const names: string[] = []
    for (const permits of this.#listed.values()) {
      if (names.length === SHORT_NAMES_MAX) break
      if (permits.isShort(now)) names.push(permits.name)
    }
    return names.join('\n')
  }
}

export class LeasedPermits implements Permits {
  readonly name: string
  readonly #book: PermitBook
  #limit: number
  #held = 0
  /** Undefined before the first answer. */
  #granted: number | undefined
  #answerAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.NEGATIVE_INFINITY
  #peak = 0
  #peakAt: Instant
  #shortAt = Number.NEGATIVE_INFINITY
  #othersShort = 0
  #othersShortAt = Number.NEGATIVE_INFINITY
  #isAsking = false
  usedAt: Instant

  constructor(now: Instant, name: string, limit: number, book: PermitBook) {
    this.name = name
    this.#limit = limit
    this.#book = book
    this.#peakAt = now
    this.usedAt = now
  }

  get limit(): number {
    return this.#limit
  }

  /** Places of this gateway; what runs may be more, where places were given up or a limit was lowered. */
  allowed(now: Instant): number {
    const credit = Math.max(1, Math.floor(this.#limit / (2 * this.#book.gatewayCount)))
    if (this.#granted === undefined) return Math.min(this.#limit, credit)
    if (!this.#book.isSilent(now)) return this.#granted
    const share = Math.max(credit, Math.ceil(this.#limit / this.#book.gatewayCount))
    return Math.min(this.#limit, share, Math.max(credit, this.#granted))
  }

  hold(now: Instant, held: number): void {
    this.#fade(now)
    this.#held = held
    this.#peak = Math.max(this.#peak, held)
    this.usedAt = now
    this.#book.list(this)
  }

  retune(now: Instant, limit: number): void {
    this.#limit = limit
    if (this.#granted !== undefined) this.#granted = Math.min(this.#granted, limit)
    this.usedAt = now
  }

  /** A request has no place: true when the store may have one. */
  askFor(now: Instant): boolean {
    this.#shortAt = now
    this.usedAt = now
    this.#book.list(this)
    if (this.#book.isSilent(now) || now - this.#answerAt < ASK_AGAIN_US) return false
    this.#isAsking = true
    return true
  }

  get isAsking(): boolean {
    return this.#isAsking
  }

  isShort(now: Instant): boolean {
    return now - this.#shortAt < SHORT_US
  }

  /** Nothing is held or granted: a new one would be the same. */
  isIdle(now: Instant): boolean {
    return this.#held === 0 && (this.#granted ?? 0) === 0 && !this.isShort(now) && this.#target(now) === 0
  }

  // ── for the book ──

  isDue(now: Instant): boolean {
    if (this.#isAsking || this.#granted === undefined) return true
    const target = this.#target(now)
    if (target > this.#granted) return true
    return target < this.#granted && (target === 0 || target <= this.#granted - 2)
  }

  /** Lowers itself to what it will ask for before it asks: a lost answer cannot leave two gateways with one place. */
  ask(now: Instant): RoomAsk {
    this.#isAsking = false
    this.#askedAt = now
    const target = this.#target(now)
    if (this.#granted !== undefined) this.#granted = Math.min(this.#granted, target)
    const granted = this.#granted ?? 0
    return { name: this.name, limit: this.#limit, held: this.#held, granted, target, sequence: now }
  }

  /** An answer to an earlier call says nothing any more. */
  answered(now: Instant, sentAt: Instant, granted: number): void {
    if (granted < 0 || sentAt !== this.#askedAt) return
    this.#granted = Math.min(granted, this.#limit)
    this.#answerAt = now
  }

  othersAreShort(now: Instant, count: number): void {
    this.#othersShort = count
    this.#othersShortAt = now
  }

  #target(now: Instant): number {
    this.#fade(now)
    const isWanted = this.isShort(now)
    const peak = Math.ceil(this.#peak)
    if (peak === 0 && !isWanted && now - this.usedAt > PEAK_MEMORY_US) return 0
    const calm = peak + Math.max(2, Math.ceil(peak / 4))
    const wanted = isWanted ? Math.max(calm, 2 * (this.#granted ?? 0)) : calm
    if (now - this.#othersShortAt > SHORT_US) return Math.min(this.#limit, wanted)
    if (this.#held === 0 && !isWanted) return 0
    return Math.min(wanted, Math.ceil(this.#limit / (1 + this.#othersShort)))
  }

  #fade(now: Instant): void {
    const kept = PEAK_MEMORY_US / (PEAK_MEMORY_US + Math.max(0, now - this.#peakAt))
    const faded = this.#held + (this.#peak - this.#held) * kept
    // What is left of a place after some seconds is none.
    this.#peak = faded - this.#held < 0.1 ? this.#held : faded
    this.#peakAt = Math.max(now, this.#peakAt)
  }
}
