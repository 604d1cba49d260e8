import type { Instant } from '../base/clock.ts'
import type { EngineTime } from './engine-time.ts'

/**
 * What engines cost, in the journal. Money is in whole nano-dollars: a replica-second of a large GPU is about a million
 * of them, and 2^53 of them are nine million dollars.
 */

/**
 * One second of one replica has been closed: from now on it does not change. Law L15: `billNano` is the sum of all
 * lines, to the nano-dollar.
 */
export interface SecondClosed {
  readonly kind: 'second-closed'
  readonly at: Instant
  readonly replicaId: string
  readonly poolId: string
  /** The part of the second in which the replica was there. */
  readonly fromAt: Instant
  readonly toAt: Instant
  /** Since when the replica is billed, and for how much: the bill is ⌊rate · t⌋ at `toAt` less ⌊rate · t⌋ at `fromAt`. */
  readonly billedSince: Instant
  readonly nanoPerHour: number
  readonly billNano: number
  /** Microseconds of engine time that were split: by the engine itself, or by an estimate. */
  readonly busyUs: number
  readonly isMeasured: boolean
  readonly tenants: readonly TenantSecond[]
  readonly lines: PlatformLines
}

export interface TenantSecond {
  readonly tenantId: string
  /** For its tickets. Negative where an attempt that failed now had been charged to it in earlier seconds. */
  readonly usedNano: number
  /** Its part of the idle time, where the operator lets tenants pay for that. */
  readonly idleNano: number
}

/** What no tenant pays for. */
export interface PlatformLines {
  /** Time in which no step ran, as far as the platform bears it. */
  readonly idleNano: number
  /** Attempts that failed, and what preempted sequences read again. */
  readonly wasteNano: number
  /** The platform's own requests: shadow copies, holdout items. */
  readonly platformNano: number
  /** Work of a gateway that died before it could say whose it was. */
  readonly crashedNano: number
  /** Work that was reported after the second was closed. */
  readonly lateNano: number
}

/** All seconds in which a ticket had a turn are closed: its cost is final. Once for every ticket that had a turn. */
export interface CostClosed {
  readonly kind: 'cost-closed'
  readonly at: Instant
  readonly ticketId: string
  readonly tenantId: string
  /** A request of the platform's own, which the platform pays for. */
  readonly isErrand: boolean
  /** What the tenant pays. */
  readonly costNano: number
  /** What the platform bears of it: failed attempts, prompts that were read again. */
  readonly wasteNano: number
  /** What it would have cost alone less what it cost; what reading its cached tokens would have cost. */
  readonly batchSavedNano: number
  readonly prefixSavedNano: number
  /** Engine time of all its attempts. */
  readonly time: EngineTime
  /** The engine said how long it worked for it; else the gateway estimated that. */
  readonly isMeasured: boolean
  /** Every replica that it used has a price. */
  readonly isPriced: boolean
}
