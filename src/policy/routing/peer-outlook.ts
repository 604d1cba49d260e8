import type { Outlook } from '../../domain/outlook.ts'

/**
 * How soon would a gateway of another region begin? A meter over what the gateway says of itself once a tick, corrected
 * by what we know better: what we have sent there since, and that it refused us or broke off a moment ago. A region has
 * one or several gateways (`region-outlook.ts`).
 *
 * News that is a second old invites a stampede: all who come in that second see the same empty queue. So every ticket
 * that goes there moves the predicted wait on by its own cost at the rate that the region has told (the same idea as the
 * placer's horizon), and the clock eats it. After a refusal the region is left alone for as long as it asked, within
 * bounds: a lease that always ends. News older than `keepUs` are none.
 *
 * The round trip is the one that configuration tells, or it is learned from probes: down at once, up slowly, because a
 * busy machine answers late without being farther away.
 *
 * Deliberately not: it chooses nothing (`choose-pool.ts`) and does not say whether the gateway is alive (`health.ts`).
 *
 * Example: told 100 ms of wait and 0.5 of cost a microsecond; 50,000 of cost sent since: 200 ms; 80 ms later, 120 ms.
 */
export const PEER_OUTLOOK_DEFAULTS = {
  /** Five ticks. */
  keepUs: 5_000_000,
  /**
   * How long a region that refused or was lost is left alone, when it does not say; and at most. Two ticks: it may have
   * refused one tenant's request and not another's, and its next news say more.
   */
  standBackUs: 500_000,
  standBackUsMax: 2_000_000,
  /** Until the first probe: across a continent. */
  roundTripUs: 50_000,
  /** Of each later measurement above the present one. */
  slowerRatio: 1 / 8,
}

export class PeerOutlook {
  readonly #isRoundTripGiven: boolean
  #roundTripUs: number
  #hasMeasured = false
  #said: Outlook | undefined
  #saidAt = 0
  #sentCost = 0
  #standBackUntil = 0
  #isSilent = false

  constructor(roundTripUs?: number) {
    this.#isRoundTripGiven = roundTripUs !== undefined
    this.#roundTripUs = roundTripUs ?? PEER_OUTLOOK_DEFAULTS.roundTripUs
  }

  get roundTripUs(): number {
    return this.#roundTripUs
  }

  /** What the gateway said, `roundTripUs` after it was asked; undefined: it did not answer, and its last news still age. */
  report(now: number, said: Outlook | undefined, roundTripUs?: number): void {
    this.#isSilent = said === undefined
    if (said === undefined) return
    this.#said = said
    this.#saidAt = now
    this.#sentCost = 0
    if (roundTripUs === undefined || this.#isRoundTripGiven) return
    const isSooner = !this.#hasMeasured || roundTripUs < this.#roundTripUs
    this.#hasMeasured = true
    this.#roundTripUs = isSooner
      ? roundTripUs
      : this.#roundTripUs + (roundTripUs - this.#roundTripUs) * PEER_OUTLOOK_DEFAULTS.slowerRatio
  }

  /** A ticket goes there. */
  sent(cost: number): void {
    this.#sentCost += cost
  }

  /** It took nothing, or broke off. */
  failed(now: number, retryAfterUs?: number): void {
    const { standBackUs, standBackUsMax } = PEER_OUTLOOK_DEFAULTS
    this.#standBackUntil = now + Math.min(standBackUsMax, Math.max(standBackUs, retryAfterUs ?? 0))
  }

  readyReplicaCount(now: number): number {
    const isFresh = this.#said !== undefined && now - this.#saidAt <= PEER_OUTLOOK_DEFAULTS.keepUs
    return isFresh ? (this.#said as Outlook).readyReplicaCount : 0
  }

  /** Whether the gateway did not answer when it was last asked. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  isStandingBack(now: number): boolean {
    return now < this.#standBackUntil
  }

  get isShedding(): boolean {
    return this.#said?.isShedding ?? false
  }

  /** Until a turn over there; the way to it not counted. */
  waitUs(now: number): number {
    const said = this.#said
    if (said === undefined || said.drainPerUs <= 0) return Number.POSITIVE_INFINITY
    return Math.max(0, said.waitUs + this.#sentCost / said.drainPerUs - (now - this.#saidAt))
  }

  prefillUs(tokens: number): number {
    return Math.round(tokens * (this.#said?.prefillUsPerToken ?? 0))
  }
}
