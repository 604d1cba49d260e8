import type { Instant } from '../base/clock.ts'

/** Entries of the journal about the number of a pool's replicas. */

/** What follows from what is seen of a pool, once a tick: the signals that others may scale by. */
export interface AutoscaleReported {
  readonly kind: 'autoscale-reported'
  readonly at: Instant
  readonly poolId: string
  /** Replicas that the pool should have. */
  readonly desired: number
  readonly readyCount: number
  readonly pendingCount: number
  /** Offered work in weighted tokens a microsecond, refused or not, of all gateways. */
  readonly demandPerUs: number
  readonly backlogUs: number
  readonly queuedCount: number
  /** Something is asked of the pool, or was lately. */
  readonly isActive: boolean
  /** As learned, or as set. */
  readonly coldStartUs: number
  /** Share of late requests that were served as promised. */
  readonly attainmentRatio: number
  /** Share of what the GPUs could do; absent where nobody says. */
  readonly gpuUseRatio?: number
  readonly kvUseRatio?: number
}

/** The leader ordered another number of replicas, or would have (`dry-run`). */
export interface ScaleOrdered {
  readonly kind: 'scale-ordered'
  readonly at: Instant
  readonly poolId: string
  readonly from: number
  readonly to: number
  /** Replicas that were drained for it. */
  readonly leavingCount: number
  readonly outcome: 'done' | 'failed' | 'dry-run'
  readonly because: string
}
