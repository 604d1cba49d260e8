import type { Clock, Instant } from '../../../src/base/clock.ts'
import { Rng } from '../../../src/base/rng.ts'
import { VirtualClock } from '../../../src/base/virtual-clock.ts'
import type { RateLimit } from '../../../src/domain/tenant.ts'
import { Renewals } from '../../../src/lifecycle/sharing/renewals.ts'
import type { Sharing } from '../../../src/lifecycle/sharing-ports.ts'
import { type Bucket, TokenBucket } from '../../../src/policy/budgets/token-bucket.ts'
import type { LeasedBucket } from '../../../src/policy/sharing/leased-bucket.ts'
import { type SharingOptions, SliceBook } from '../../../src/policy/sharing/slice-book.ts'
import { MemorySharing } from '../../../src/sharing/memory-sharing.ts'

/**
 * Several gateways, one budget, one lease store, in virtual time: the same slice book, renewals and store that run live,
 * behind a network with delay, loss, cuts and calls that are carried out late. Gateways can be paused, the store can
 * stop, be wiped, and have its clock set. Traffic arrives by seed; what is admitted is held against law L4.
 */
export interface Fault {
  readonly kind: 'store-stops' | 'store-wiped' | 'cut' | 'gateway-pauses' | 'clock-steps' | 'joins' | 'answers-lost'
  readonly atUs: Instant
  readonly forUs?: number
  /** The gateway that is cut off or paused. */
  readonly gateway?: number
  readonly stepUs?: number
}

export interface SharedLimitsOptions {
  readonly seed: number
  readonly gatewayCount: number
  readonly limit: RateLimit
  /** Part of the traffic at each gateway. */
  readonly shares: readonly number[]
  /** Tokens offered ÷ the budget's rate. */
  readonly load: number
  readonly requestTokens: readonly [min: number, max: number]
  readonly durationUs: number
  readonly faults: readonly Fault[]
  readonly lossRatio?: number
  readonly delayUsMax?: number
  /** `slices`: as built. `full`: the full limit at each gateway while the store is away, as others do it. */
  readonly way?: 'slices' | 'full' | 'static'
  readonly sharing?: Partial<SharingOptions>
  /** Traffic in bursts: this long on, this long off. */
  readonly burstsUs?: readonly [onUs: number, offUs: number]
}

export interface SharedLimitsResult {
  readonly admitted: number
  readonly offered: number
  /** Over all windows w, the most of admitted(w) − R·w. */
  readonly excess: number
  /** Admitted in each second. */
  readonly perSecond: readonly number[]
  /** Tokens that a request waited for longer than FETCH allows, always 0; requests that fetched. */
  readonly fetchCount: number
  readonly callCount: number
}

const US_PER_MINUTE = 60_000_000

export async function playSharedLimits(options: SharedLimitsOptions): Promise<SharedLimitsResult> {
  const clock = new VirtualClock(1_000_000_000)
  const world = new FaultyStore(clock, options)
  const gateways = options.shares.map((share, i) => new SharedGateway(clock, world, options, i, share))
  const excess = new Excess(options.limit)
  const seconds = Array.from({ length: Math.ceil(options.durationUs / 1_000_000) }, () => 0)
  const startAt = clock.now()
  const total = { admitted: 0, offered: 0 }
  const admit = (amount: number): void => {
    const now = clock.now()
    total.admitted += amount
    excess.spend(now, amount)
    const second = Math.floor((now - startAt) / 1_000_000)
    if (second < seconds.length) seconds[second] = (seconds[second] ?? 0) + amount
  }
  for (const [i, gateway] of gateways.entries()) {
    const joins = options.faults.find(({ kind, gateway: who }) => kind === 'joins' && who === i)
    clock.at(startAt + (joins?.atUs ?? 0), () => void gateway.run(startAt + options.durationUs, total, admit))
  }
  await clock.run(startAt + options.durationUs)
  const fetchCount = gateways.reduce((sum, gateway) => sum + gateway.fetchCount, 0)
  return { ...total, excess: excess.most, perSecond: seconds, fetchCount, callCount: world.callCount }
}

/** The largest admitted(w) − R·w over all windows: a bucket that only fills, and leaks at the budget's rate. */
export class Excess {
  readonly #perUs: number
  #now = 0
  #level = 0
  most = 0

  constructor(limit: RateLimit) {
    this.#perUs = limit.perMinute / US_PER_MINUTE
  }

  spend(now: Instant, amount: number): void {
    this.#level = Math.max(0, this.#level - (now - this.#now) * this.#perUs) + amount
    this.#now = now
    this.most = Math.max(this.most, this.#level)
  }
}

/** The network and the store's machine, with their faults. */
class FaultyStore {
  readonly #clock: VirtualClock
  readonly #options: SharedLimitsOptions
  readonly #rng: Rng
  readonly #store: MemorySharing
  readonly #startAt: Instant
  #offsetUs = 0
  callCount = 0

  constructor(clock: VirtualClock, options: SharedLimitsOptions) {
    this.#clock = clock
    this.#options = options
    this.#startAt = clock.now()
    this.#rng = Rng.stream(options.seed, 'network')
    const ownClock: Clock = {
      now: () => clock.now() + this.#offsetUs,
      at: (instant, fn) => clock.at(instant, fn),
      sleep: (us) => clock.sleep(us),
    }
    this.#store = new MemorySharing(ownClock)
    for (const { kind, atUs, stepUs = 0 } of options.faults) {
      if (kind === 'store-wiped') clock.at(this.#startAt + atUs, () => this.#store.wipe())
      if (kind === 'clock-steps') {
        clock.at(this.#startAt + atUs, () => {
          this.#offsetUs += stepUs
        })
      }
    }
  }

  /** As one gateway reaches the store. */
  sharingOf(gateway: number): Sharing {
    return {
      take: (shard, member, accounts) => this.#carry(gateway, () => this.#store.take(shard, member, accounts)),
      room: (member, told, asks) => this.#carry(gateway, () => this.#store.room(member, told, asks)),
      salt: (offered) => this.#carry(gateway, () => this.#store.salt(offered)),
      leave: (id) => this.#store.leave(id),
    }
  }

  isPaused(gateway: number): Instant | undefined {
    return this.#endOf('gateway-pauses', gateway)
  }

  async #carry<T>(gateway: number, call: () => Promise<T | undefined>): Promise<T | undefined> {
    this.callCount++
    if (this.#isLost(gateway)) return this.#noAnswer()
    await this.#clock.sleep(this.#delayUs())
    // A store that is stopped has the call in its socket, and carries it out when it goes on.
    const goesOnAt = this.#endOf('store-stops', undefined)
    if (goesOnAt !== undefined) await this.#clock.sleep(goesOnAt - this.#clock.now() + this.#rng.below(2_000))
    const answer = await call()
    await this.#clock.sleep(this.#delayUs())
    if (this.#endOf('answers-lost', gateway) !== undefined || this.#isLost(gateway)) return this.#noAnswer()
    const resumesAt = this.isPaused(gateway)
    if (resumesAt !== undefined) await this.#clock.sleep(resumesAt - this.#clock.now())
    return answer
  }

  async #noAnswer(): Promise<undefined> {
    await this.#clock.sleep(2_000_000)
    return undefined
  }

  #isLost(gateway: number): boolean {
    return this.#endOf('cut', gateway) !== undefined || this.#rng.next() < (this.#options.lossRatio ?? 0)
  }

  #delayUs(): number {
    return 100 + this.#rng.below(this.#options.delayUsMax ?? 1_000)
  }

  #endOf(kind: Fault['kind'], gateway: number | undefined): Instant | undefined {
    const now = this.#clock.now() - this.#startAt
    for (const fault of this.#options.faults) {
      if (fault.kind !== kind || (gateway !== undefined && fault.gateway !== gateway)) continue
      const endsUs = fault.atUs + (fault.forUs ?? 0)
      if (now >= fault.atUs && now < endsUs) return this.#startAt + endsUs
    }
    return undefined
  }
}

class SharedGateway {
  readonly #clock: VirtualClock
  readonly #world: FaultyStore
  readonly #options: SharedLimitsOptions
  readonly #index: number
  readonly #share: number
  readonly #rng: Rng
  fetchCount = 0

  constructor(clock: VirtualClock, world: FaultyStore, options: SharedLimitsOptions, index: number, share: number) {
    this.#clock = clock
    this.#world = world
    this.#options = options
    this.#index = index
    this.#share = share
    this.#rng = Rng.stream(options.seed, `gateway ${index}`)
  }

  async run(untilAt: Instant, total: { offered: number }, admit: (amount: number) => void): Promise<void> {
    const { limit, load, requestTokens, way = 'slices', gatewayCount, burstsUs } = this.#options
    const clock = this.#clock
    const book = new SliceBook(clock.now(), `g${this.#index}`, { shardCount: 1, ...this.#options.sharing })
    const renewals = new Renewals(clock, this.#world.sharingOf(this.#index), book)
    if (way !== 'static') await renewals.start()
    const leased = book.bucket(clock.now(), 'tenant:t:tokens', limit)
    const part = way === 'static' ? partOf(limit, gatewayCount) : limit
    const own = new TokenBucket(clock.now(), part)
    const [min, max] = requestTokens
    const perUs = ((limit.perMinute / US_PER_MINUTE) * load * this.#share) / ((min + max) / 2)
    while (clock.now() < untilAt) {
      await clock.sleep(Math.max(1, Math.round(-Math.log(1 - this.#rng.next()) / perUs)))
      const resumesAt = this.#world.isPaused(this.#index)
      if (resumesAt !== undefined) await clock.sleep(resumesAt - clock.now())
      if (burstsUs !== undefined && clock.now() % (burstsUs[0] + burstsUs[1]) > burstsUs[0]) continue
      const amount = min + this.#rng.below(max - min + 1)
      total.offered += amount
      const isAway = book.silence(clock.now()).shardCount > 0
      const bucket: Bucket = way === 'static' || (way === 'full' && isAway) ? own : leased
      if (bucket.fitsAt(clock.now(), amount) === clock.now()) {
        bucket.take(clock.now(), amount)
        admit(amount)
      } else if (bucket === leased) void this.#fetch(renewals, leased, amount, admit)
    }
  }

  /** Larger than the slice: one call, as in the live server. */
  async #fetch(renewals: Renewals, bucket: LeasedBucket, amount: number, admit: (n: number) => void): Promise<void> {
    if (!bucket.askFor(this.#clock.now(), amount) || !(await renewals.fetch([bucket]))) return
    this.fetchCount++
    const now = this.#clock.now()
    if (bucket.fitsAt(now, amount) !== now) return
    bucket.take(now, amount)
    admit(amount)
  }
}

const partOf = ({ perMinute, burst }: RateLimit, count: number): RateLimit => ({
  perMinute: Math.floor(perMinute / count),
  burst: Math.floor(burst / count),
})

const S = 1_000_000

/** Faults by name: what happens, six seconds after the start. */
export const FAULT_MIXES: Readonly<Record<string, readonly Fault[]>> = {
  'no fault': [],
  'store stopped for 4 s': [{ kind: 'store-stops', atUs: 6 * S, forUs: 4 * S }],
  'store gone for 2 s, back empty': [
    ...[0, 1, 2, 3].map((gateway) => ({ kind: 'cut' as const, gateway, atUs: 6 * S, forUs: 2 * S })),
    { kind: 'store-wiped', atUs: 7 * S },
  ],
  'a gateway cut off for 6 s': [{ kind: 'cut', gateway: 0, atUs: 6 * S, forUs: 6 * S }],
  'a gateway cut off, the store wiped': [
    { kind: 'cut', gateway: 0, atUs: 6 * S, forUs: 6 * S },
    { kind: 'store-wiped', atUs: 8 * S },
  ],
  'answers to a gateway lost for 6 s': [{ kind: 'answers-lost', gateway: 0, atUs: 6 * S, forUs: 6 * S }],
  'a gateway paused for 3 s': [{ kind: 'gateway-pauses', gateway: 0, atUs: 6 * S, forUs: 3 * S }],
  'the store\u2019s clock 30 s back, then 60 s forward': [
    { kind: 'clock-steps', atUs: 6 * S, stepUs: -30 * S },
    { kind: 'clock-steps', atUs: 10 * S, stepUs: 60 * S },
  ],
  'two gateways join': [
    { kind: 'joins', gateway: 2, atUs: 6 * S },
    { kind: 'joins', gateway: 3, atUs: 7 * S },
  ],
}

/** B + (k/N)·R·ttl + j·S: what law L4 allows over R·w. Every gateway joins once, at its start. */
export function l4Bound({ faults, gatewayCount, limit, requestTokens }: SharedLimitsOptions): number {
  const isAll = faults.some(({ kind }) => kind === 'store-stops')
  const away = new Set(faults.filter(({ kind }) => AWAY.has(kind)).map(({ gateway }) => gateway))
  const cut = isAll ? gatewayCount : away.size
  const joined = faults.filter(({ kind }) => kind === 'joins').length
  // A clock that steps forward is `ttl` of refill that was not.
  const steps = faults.filter(({ kind, stepUs = 0 }) => kind === 'clock-steps' && stepUs > 0).length
  const perSecond = limit.perMinute / 60
  const slice = limit.burst / (2 * gatewayCount)
  return limit.burst + (cut / gatewayCount + steps) * perSecond + joined * slice + requestTokens[1]
}

const AWAY: ReadonlySet<Fault['kind']> = new Set(['cut', 'gateway-pauses', 'answers-lost'])
