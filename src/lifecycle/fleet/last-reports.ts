import type { Replica } from '../../domain/fleet.ts'
import type { ReplicaReport } from '../ports.ts'

/**
 * What each replica of a pool said of itself last: whether it is ready, also while it is drained, and how full its memory
 * is. Bound: one record for each replica, gone with it.
 */
export class LastReports {
  readonly #last = new WeakMap<Replica, Pick<ReplicaReport, 'isReady' | 'kvUsageRatio'>>()

  report(replica: Replica, { isReady, kvUsageRatio }: ReplicaReport): void {
    this.#last.set(replica, { isReady, ...(kvUsageRatio !== undefined && { kvUsageRatio }) })
  }

  isReady(replica: Replica): boolean {
    return this.#last.get(replica)?.isReady ?? false
  }

  /** Mean over the ready ones of these that say; undefined when none does. */
  kvUseRatio(replicas: readonly Replica[]): number | undefined {
    let [sum, count] = [0, 0]
    for (const replica of replicas) {
      const { isReady, kvUsageRatio } = this.#last.get(replica) ?? {}
      if (isReady !== true || kvUsageRatio === undefined) continue
      sum += kvUsageRatio
      count++
    }
    return count === 0 ? undefined : sum / count
  }
}
