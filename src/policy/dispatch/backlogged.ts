import type { BackloggedTenant } from '../../domain/share-path.ts'
import { type OrgWeights, sharesAmong } from '../fairness/tree-share.ts'
import type { TenantBacklog } from './candidate.ts'

/**
 * Who waits at a pool, and what share of it is each one's? Only the interactive and the standard band: offline work has
 * what is left over, and no share.
 *
 * Bound: the first `tenantsMax` that came to the pool, so that the same ones are told tick after tick; their shares are
 * still those among all that wait.
 */
export function backloggedOf(
  backlogs: Iterable<TenantBacklog>,
  orgWeights: OrgWeights,
  tenantsMax: number,
): readonly BackloggedTenant[] {
  const waiting: TenantBacklog[] = []
  for (const backlog of backlogs) if (backlog.foregroundQueuedCount > 0) waiting.push(backlog)
  const shares = sharesAmong(waiting, orgWeights)
  return waiting.slice(0, tenantsMax).map(({ tenantId }, i) => ({ tenantId, share: shares[i] as number }))
}
