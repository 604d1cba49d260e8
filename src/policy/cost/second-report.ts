import type { EngineTime } from '../../domain/engine-time.ts'

/**
 * What one gateway says of one second: for each replica where it had work, how much engine time each attempt took. Times
 * are weights: measured ones are the engine's own and add up to its busy time; estimated ones are scaled to that by the
 * owner of the second, who alone has all gateways' reports.
 */
export interface SecondReport {
  readonly reporterId: string
  /** Seconds since the epoch, of the platform's clock. */
  readonly second: number
  readonly replicas: readonly ReplicaSecond[]
  /** Attempts that ended, and were for nothing: the platform bears all that they were charged with, also before. */
  readonly wasted: readonly WastedAttempt[]
  /** Tickets that ended up to the end of this second; no later report has rows of theirs. */
  readonly ended: readonly TicketEnd[]
  /** What goes back to tenants, of seconds that were closed before: told by gateways whose accounts are elsewhere. */
  readonly credits?: readonly TenantCredit[]
}

/** Moves what a tenant was charged with to another line of the bill. */
export interface TenantCredit {
  readonly tenantId: string
  readonly nano: number
  readonly line: 'waste' | 'late'
}

/** What the rows of one report were charged with at one replica, in the order of its rows. */
export interface ReplicaCharges {
  readonly replicaId: string
  /** From reported to billed engine time. */
  readonly scale: number
  readonly nanoPerUs: number
  readonly isMeasured: boolean
  readonly usedNano: readonly number[]
  readonly againNano: readonly number[]
}

export interface ReplicaSecond {
  readonly replicaId: string
  readonly isMeasured: boolean
  /** Microseconds of the second in which the gateway had something in flight there. */
  readonly busyUs: number
  readonly rows: readonly AttemptSecond[]
}

export interface AttemptSecond {
  readonly ticketId: string
  readonly attempt: number
  readonly tenantId: string
  /** A request of the platform's own. */
  readonly isErrand: boolean
  /** What it took in this second. */
  readonly time: EngineTime
}

export interface WastedAttempt {
  readonly ticketId: string
  readonly attempt: number
}

export interface TicketEnd {
  readonly ticketId: string
  readonly tenantId: string
  readonly isErrand: boolean
}
