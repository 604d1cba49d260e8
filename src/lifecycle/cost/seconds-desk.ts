import type { Instant } from '../../base/clock.ts'
import type { IdlePolicy, IdleSharer } from '../../policy/cost/idle-sharing.ts'
import type { SecondCloser } from '../../policy/cost/second-closer.ts'
import type { SecondReport } from '../../policy/cost/second-report.ts'
import type { Policies } from '../policies.ts'

/** Where a gateway's meter hands in its seconds: to an owner in this process, or to one of the cell. */
export interface SecondsDesk {
  start(now: Instant): void
  report(now: Instant, report: SecondReport): void
  /** Once a second, after the reports. */
  tick(now: Instant): void
  /** The last report was handed in. */
  finish(now: Instant): void
  /** The process is gone, and says nothing more. */
  abandon(): void
  /** All that this gateway handed in is closed, or nothing more is waited for. */
  whenDone(): Promise<void>
  readonly isDone: boolean
  view(): { readonly pendingSeconds: number; readonly lateReports: number }
}

/** Replicas that came are billed from now on, those that went no more. One replica stands for an engine of several pools. */
export function watchFleet(now: Instant, closer: SecondCloser, { fleet, poolsById }: Policies): void {
  for (const known of poolsById.values()) {
    if (known.pool.isPeer === true) continue
    for (const replica of known.pool.replicas) {
      if (closer.isWatched(replica.id)) continue
      if (replica.engineId !== undefined && fleet.standsFor(replica) !== replica) continue
      const { id, poolId } = replica
      closer.watch(now, { id, poolId, usdPerHour: known.usdPerHourOf(replica) })
    }
  }
  for (const id of closer.watched()) if (fleet.replica(id) === undefined) closer.release(now, id)
}

export interface IdleTerms {
  readonly policies: Policies
  readonly idle: IdlePolicy
  /** All tenants with their weights, for idle time that is paid by weight. */
  readonly weights: readonly IdleSharer[]
}

export function idleSharersOf(
  { idle, weights, policies }: IdleTerms,
  poolId: string,
  used: ReadonlyMap<string, number>,
): readonly IdleSharer[] {
  switch (idle) {
    case 'platform':
      return []
    case 'owners':
      return (policies.poolsById.get(poolId)?.pool.dedicatedTo ?? []).map((tenantId) => ({ tenantId, weight: 1 }))
    case 'weights':
      return weights
    case 'pro-rata':
      return [...used].map(([tenantId, weight]) => ({ tenantId, weight: Math.max(0, weight) }))
  }
}
