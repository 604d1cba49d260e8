import type { Instant } from '../../base/clock.ts'
import { BURST_MAX, TokenBucket } from './token-bucket.ts'

/**
 * May this caller have one more request read, and this many bytes of it?
 *
 * Budgets (`budgets.ts`) begin where a request is understood: whom it is for and how many tokens it needs. Reading it
 * that far is work too, and a caller whose requests are all refused would get that work for nothing. So each caller has
 * an allowance of requests and bytes for being read at all, which is spent before the body is parsed and never refunded.
 * A caller is a key that has proved valid, or else the address that the request came from; an address has a third
 * allowance, of keys that turn out to be wrong.
 *
 * Each of the three is a token bucket with a burst of ten seconds' worth; an address has `ADDRESS_BURST_MAX` at most. Bytes are counted in kibibytes and may run
 * into debt by one body, so that a body larger than the burst is slow to repeat and not impossible.
 *
 * Callers are strangers, so the number of meters is bounded. When it is reached, a meter that is full again (its caller
 * has been quiet) makes room; a caller that returns starts with a full allowance, which is what it had. Among meters
 * that are all in use the oldest goes: strangers with very many addresses can win themselves a fresh burst, and memory
 * does not grow.
 *
 * Not done here: sharing the gateway's processor fairly between callers (turns of the body queue do a part of that), and
 * limits that hold across several gateways.
 *
 * Laws: spent over any window ≤ rate · window + burst, plus one body for bytes; meters ≤ `METERS_MAX`.
 *
 * Example: 60 requests a minute have a burst of 10. A caller sends 12 at once: 10 are read, the 11th and 12th are told
 * "in 1 s".
 */
export interface IngressLimits {
  readonly requestsPerMinute: number
  readonly bytesPerMinute: number
  /** Wrong keys that an address may send. */
  readonly failedKeysPerMinute: number
}

/** Callers that are remembered: 3 MB of memory at most. */
export const METERS_MAX = 10_000

/** Meters that are looked at for one that may go, for each new caller: a few microseconds at most. */
const LOOKS_MAX = 16

/** The burst of a bucket is this part of a minute's worth. */
const BURSTS_PER_MINUTE = 6

/**
 * Requests that an address may send at once without a valid key: a second's worth of the default. Even a refusal costs
 * 30 to 50 µs, and 20,000 of them at once would stop the event loop for most of a second.
 */
export const ADDRESS_BURST_MAX = 2_000

const KIBIBYTE = 1_024

export class IngressMeter {
  readonly #requests: TokenBucket
  readonly #kibibytes: TokenBucket
  readonly #failedKeys: TokenBucket
  #announcedBytes = 0

  constructor(now: Instant, limits: IngressLimits, burstMax = BURST_MAX) {
    this.#requests = bucketOf(now, limits.requestsPerMinute, burstMax)
    this.#kibibytes = bucketOf(now, Math.ceil(limits.bytesPerMinute / KIBIBYTE))
    this.#failedKeys = bucketOf(now, limits.failedKeysPerMinute)
  }

  /** Takes one request; when there is no room for it, the time until there is. */
  takeRequest(now: Instant): number | undefined {
    const waitUs = waitFor(this.#requests, now)
    if (waitUs === undefined) this.#requests.take(now, 1)
    return waitUs
  }

  /** Takes this many bytes; when there is debt, the time until there is none. */
  takeBytes(now: Instant, bytes: number): number | undefined {
    const waitUs = waitFor(this.#kibibytes, now)
    if (waitUs === undefined) this.#kibibytes.takeMore(now, Math.ceil(bytes / KIBIBYTE))
    return waitUs
  }

  /** Bytes that come after the first of a body whose size was not told: they add to its debt. */
  takeMoreBytes(now: Instant, bytes: number): void {
    this.#kibibytes.takeMore(now, Math.ceil(bytes / KIBIBYTE))
  }

  /** The time until another key may be tried; undefined when one may be tried now. */
  failedKeysWaitUs(now: Instant): number | undefined {
    return waitFor(this.#failedKeys, now)
  }

  takeFailedKey(now: Instant): void {
    this.#failedKeys.takeMore(now, 1)
  }

  /** Bytes of bodies that are arriving. */
  get announcedBytes(): number {
    return this.#announcedBytes
  }

  /** Adds to `announcedBytes`; less than zero takes away. */
  announce(bytes: number): void {
    this.#announcedBytes += bytes
  }

  /** All three are full: forgetting the meter changes nothing. */
  isIdle(now: Instant): boolean {
    return this.#requests.isFull(now) && this.#kibibytes.isFull(now) && this.#failedKeys.isFull(now)
  }
}

function bucketOf(now: Instant, perMinute: number, burstMax = BURST_MAX): TokenBucket {
  return new TokenBucket(now, { perMinute, burst: Math.min(burstMax, Math.ceil(perMinute / BURSTS_PER_MINUTE)) })
}

function waitFor(bucket: TokenBucket, now: Instant): number | undefined {
  const fitsAt = bucket.fitsAt(now, 1) ?? now
  return fitsAt <= now ? undefined : fitsAt - now
}

export interface MetersOptions {
  readonly metersMax?: number
  /** Requests at once of one caller, at most. */
  readonly burstMax?: number
}

/** The meters of all callers of one kind, by whatever tells the callers apart. */
export class IngressMeters<Id> {
  readonly #limits: IngressLimits
  readonly #metersMax: number
  readonly #burstMax: number
  readonly #meters = new Map<Id, IngressMeter>()

  constructor(limits: IngressLimits, { metersMax = METERS_MAX, burstMax = BURST_MAX }: MetersOptions = {}) {
    this.#limits = limits
    this.#metersMax = metersMax
    this.#burstMax = burstMax
  }

  get size(): number {
    return this.#meters.size
  }

  find(id: Id): IngressMeter | undefined {
    return this.#meters.get(id)
  }

  of(now: Instant, id: Id): IngressMeter {
    const known = this.#meters.get(id)
    if (known !== undefined) return known
    if (this.#meters.size >= this.#metersMax) this.#makeRoom(now)
    const meter = new IngressMeter(now, this.#limits, this.#burstMax)
    this.#meters.set(id, meter)
    return meter
  }

  /** A map iterates in the order of insertion: a meter that is in use goes to the end, and the search goes on. */
  #makeRoom(now: Instant): void {
    let looked = 0
    for (const [id, meter] of this.#meters) {
      this.#meters.delete(id)
      if (++looked === LOOKS_MAX || meter.isIdle(now)) return
      this.#meters.set(id, meter)
    }
  }
}
