import type { ConsoleQueue } from './console-queue.ts'
import type { ConsoleTrial } from './trial-counts.ts'
import type { ConsoleTrouble } from './troubles.ts'

/** What the console's feed tells. */
export interface ConsolePool {
  readonly id: string
  readonly queued: number
  readonly held: number
  readonly ready: number
  readonly pressure: number
  readonly isShedding: boolean
  readonly usdPerHour: number | undefined
  /** Tenants with waiting work: the first of them with their share of the pool, and how many there are (100 at most). */
  readonly waiting: ReadonlyArray<readonly [tenant: string, share: number]>
  readonly waitingCount: number
}

export interface ConsoleReplica {
  readonly id: string
  readonly health: string
  readonly isReady: boolean
  readonly because: string
}

/** Figures of the last minute, by COUNTED. */
export interface ConsoleParty {
  readonly name: string
  readonly counts: readonly number[]
}

/** What somebody should see at once: a refusal, a change of rung, health, release. */
export interface ConsoleEvent {
  readonly id: number
  readonly at: number
  readonly kind: string
  readonly tenant: string | undefined
  readonly text: string
  readonly ticketId: string | undefined
}

export interface ConsoleView {
  readonly at: number
  readonly columns: readonly string[]
  readonly total: readonly number[]
  readonly pools: readonly ConsolePool[]
  readonly replicas: readonly ConsoleReplica[]
  readonly tenants: readonly ConsoleParty[]
  /** Tenants that are not named. */
  readonly others: number
  readonly models: readonly ConsoleParty[]
  readonly queue: ConsoleQueue
  /** What is out of order now. */
  readonly troubles: readonly ConsoleTrouble[]
  /** Releases with shadows or a holdout set. */
  readonly trials: readonly ConsoleTrial[]
  readonly firstTokenP95Ms: number | undefined
  /** The newest second of the hour: time, arrived, completed, refused, broken, queued, pressure, p95. */
  readonly second: readonly number[] | undefined
  /** Gateways whose figures are in the sums, and how many there are. */
  readonly gateways: { readonly heard: number; readonly of: number }
  readonly events: readonly ConsoleEvent[]
  /** Events that were too many to tell, since the start. */
  readonly eventsLeftOut: number
}
