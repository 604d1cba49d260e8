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
