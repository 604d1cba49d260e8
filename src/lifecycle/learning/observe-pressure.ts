import { promptTokensOf } from '../../domain/request.ts'
import type { Verdict } from '../../policy/admission/admission.ts'
import type { RungChange } from '../../policy/ladder/ladder.ts'
import { noteOffered } from '../autoscale/note-offered.ts'
import type { Platform } from '../platform.ts'
import type { Ticket } from '../ticket.ts'
import { auditRefusal } from './audit-refusals.ts'

/**
 * Every decision on a request also says how hard pressed its tenant is: the ladder hears of it, and so does the audit,
 * if the request was refused for lateness. Tenants that send nothing are looked at by the tick (`control-loop.ts`).
 */
export function observePressure(platform: Platform, ticket: Ticket, verdict: Verdict): void {
  const { request, release: picked } = ticket
  const { policies, world } = platform
  const now = world.clock.now()
  const poolId = verdict.kind === 'admitted' ? verdict.poolId : verdict.nearest?.pool.poolId
  const pools = picked === undefined ? undefined : policies.poolsByRelease.get(picked.release.id)
  // A verdict on the fallback's pool says how hard pressed the tenant is where it asked to be.
  const asked = pools?.find((known) => known.pool.id === poolId) ?? pools?.[0]
  if (asked === undefined) return
  const { tenant } = request
  policies.lengths.count('offered', promptTokensOf(request))
  const { offeredCost, pressure } = verdict
  if (offeredCost === undefined) return
  asked.demand.observe(now, { tenant, cost: offeredCost })
  noteOffered(platform, asked, request, verdict, offeredCost)
  if (pressure === undefined) return
  const demand = asked.demand.of(now, tenant.id)
  const hasPassages = request.retrieval !== undefined
  const change = policies.ladder.observe(now, { tenant, poolId: asked.pool.id, pressure, demand, hasPassages })
  if (change !== undefined) journalRungChange(platform, change)
  if (verdict.kind !== 'rejected' || verdict.refusal.code !== 'predicted-late') return
  const { nearest } = verdict
  // What is kept for others is refused by choice, and no prediction is on trial.
  if (nearest !== undefined && nearest.ending !== 'kept') auditRefusal(platform, ticket, nearest)
}

export function journalRungChange(platform: Platform, change: RungChange): void {
  const { at, tenantId, poolId, from, to, pressure, because } = change
  platform.world.journal.record({
    kind: 'rung-changed',
    at,
    tenantId,
    poolId,
    from: from.name,
    to: to.name,
    depth: to.depth,
    pressure,
    because,
  })
}
