import type { Instant } from '../../base/clock.ts'
import { GRAINS_PER_TOKEN } from '../budgets/token-bucket.ts'
import { type Membership, ShardClock, type ShardReading } from './shard-clock.ts'

/**
 * How much of each budget may this gateway hold? The store's side of shared budgets, as a pure machine.
 *
 * Half of a budget's burst stays here, as the *level*. The other half may be out, in *slices* of at most B ÷ 2N that
 * gateways spend from without asking. Accounts are cumulative: a gateway says what it has spent and was granted since the
 * account's birth, and the answer is the new total of grants. So a call that is late, lost or repeated changes nothing
 * twice. What was spent ahead of any grant is a debt, charged once. What a gateway has too much of it deposits, which is
 * a total too.
 *
 *     slice of the gateway = granted − spent          level + all slices ≤ burst
 *
 * Refill runs on heard time (`shard-clock.ts`). A bucket that nobody has seen is full, but after the store was emptied it
 * begins as if it had been empty then, because it may have been. Of a scarce level one call gets half at most, so that
 * the first caller does not take all; a request that `need`s more than a slice gets all that it needs, or nothing more.
 *
 * Arithmetic is in whole grains (`token-bucket.ts`), so that the functions in Redis, which are the twin of this file
 * (`sharing/lease-functions.ts`), agree to the last one.
 *
 * Laws: L4 for the fleet (docs/architecture/laws.md). Bounds: accounts of gateways that are gone are dropped when a bucket
 * has more than GONE_MAX of them; `sweep` drops buckets that nobody used while they filled.
 *
 * Example: 60 a minute, half of the burst 10, full; two gateways. A wants 4: granted 4, level 6. A spent 4 and wants 4:
 * half of 6 is for others, so granted 3 more. B spent 2 on credit: level 3 − 2, granted 2, and then one more of what is left.
 */
export interface Account {
  readonly name: string
  /** When the account began; a later life of it has a later birth. */
  readonly birth: Instant
  readonly perMinute: number
  /** Tokens that stay in the store: half of the burst. */
  readonly half: number
  /** Totals since birth, in tokens. */
  readonly spent: number
  readonly granted: number
  readonly deposited: number
  /** Slice that the gateway would like to hold. */
  readonly want: number
  /** Epoch of this account's last answer; empty before the first. */
  readonly epoch: string
  /** What one request that is larger than the slice needs; 0 when there is none. */
  readonly need: number
}

export interface AccountAnswer {
  /** Total of grants since birth; −1 for a late call of an earlier life of the account. */
  readonly granted: number
  /** Whole tokens that are left in the store; below zero is debt. */
  readonly level: number
}

export interface ShardAnswer {
  readonly gatewayCount: number
  readonly silentCount: number
  readonly epoch: string
  /** Since this gateway was heard before, as the store's clock has it; −1 when the store did not know it. */
  readonly gapUs: number
  readonly accounts: readonly AccountAnswer[]
}

interface Holding {
  birth: Instant
  spent: number
  granted: number
  deposited: number
}

interface Bucket {
  levelGrains: number
  heardUs: number
  usedAt: Instant
  /** How long the bucket takes to fill, twice, and two minutes: then nobody can tell it from a new one. */
  keepUs: number
  readonly holdings: Map<string, Holding>
}

/** Accounts of a bucket beyond two for each gateway of the roster: then those of gateways that are gone are dropped. */
const GONE_MAX = 2

export class LeaseShard {
  readonly #clock = new ShardClock()
  readonly #buckets = new Map<string, Bucket>()

  get bucketCount(): number {
    return this.#buckets.size
  }

  /** Gateways that have an account of this budget. */
  holdingCount(name: string): number {
    return this.#buckets.get(name)?.holdings.size ?? 0
  }

  /** Hears the gateway and answers each of its accounts. Without accounts it is a *beat*: "I am here". */
  take(now: Instant, member: Membership, accounts: readonly Account[]): ShardAnswer {
    const reading = this.#clock.advance(now, member)
    return {
      gatewayCount: reading.gatewayCount,
      silentCount: reading.gatewayCount - reading.liveCount,
      epoch: reading.epoch,
      gapUs: reading.gapUs,
      accounts: accounts.map((account) => this.#answer(now, member.id, account, reading)),
    }
  }

  leave(id: string): boolean {
    return this.#clock.leave(id)
  }

  /** Forgets buckets that nobody has used for as long as they take to fill: a new one starts full. */
  sweep(now: Instant): void {
    for (const [name, bucket] of this.#buckets) if (now - bucket.usedAt > bucket.keepUs) this.#buckets.delete(name)
  }

  #answer(now: Instant, id: string, account: Account, reading: ShardReading): AccountAnswer {
    const { birth, perMinute, want, need } = account
    const full = account.half * GRAINS_PER_TOKEN
    const bucket = this.#buckets.get(account.name)
    const known = bucket?.holdings.get(id)
    if (known !== undefined && birth < known.birth) return { granted: -1, level: 0 }
    const same = known?.birth === birth ? known : undefined
    const isLost = account.epoch !== '' && account.epoch !== reading.epoch
    let level = levelOf(bucket, perMinute, full, reading)
    const deposited = Math.max(account.deposited, same?.deposited ?? 0)
    if (same !== undefined) level = Math.min(full, level + (deposited - same.deposited) * GRAINS_PER_TOKEN)
    const spent = Math.max(account.spent, same?.spent ?? 0)
    let granted = Math.max(account.granted, isLost ? spent : 0, same?.granted ?? 0)
    if (granted < spent) {
      level -= (spent - granted) * GRAINS_PER_TOKEN
      granted = spent
    }
    level = Math.max(-full, level)
    const there = Math.floor(level / GRAINS_PER_TOKEN)
    const slice = granted - spent
    let give = Math.max(0, Math.min(want - slice, there))
    if (give > 0 && reading.liveCount > 1) give = Math.min(give, Math.max(1, Math.floor(there / 2)))
    if (need > slice + give && need <= slice + there) give = need - slice
    level -= give * GRAINS_PER_TOKEN
    granted += give
    const holdings = bucket?.holdings ?? new Map<string, Holding>()
    holdings.set(id, { birth, spent, granted, deposited })
    const keepUs = 120_000_000 + Math.ceil((2 * full) / Math.max(1, perMinute))
    this.#buckets.set(account.name, { levelGrains: level, heardUs: reading.heardUs, usedAt: now, keepUs, holdings })
    if (holdings.size > GONE_MAX * (reading.gatewayCount + 1)) this.#dropGone(holdings)
    return { granted, level: Math.floor(level / GRAINS_PER_TOKEN) + 0 }
  }

  #dropGone(holdings: Map<string, Holding>): void {
    for (const id of holdings.keys()) if (!this.#clock.knows(id)) holdings.delete(id)
  }
}

function levelOf(bucket: Bucket | undefined, perMinute: number, full: number, reading: ShardReading): number {
  if (bucket !== undefined)
    return Math.min(full, bucket.levelGrains + Math.max(0, reading.heardUs - bucket.heardUs) * perMinute)
  // The bucket may have been spent when the store was emptied.
  return reading.isEmptied ? Math.min(full, reading.heardUs * perMinute) : full
}
