import type { Request } from '../../domain/request.ts'
import type { Verdict } from '../../policy/admission/admission.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import type { Platform } from '../platform.ts'

/**
 * A request was decided on: what it would take of the pool is offered work, admitted or refused. What its own budget
 * refuses is not, nor what no engine could run: more replicas would not serve it. The first request at a pool that sleeps
 * wakes it.
 */
export function noteOffered(
  platform: Platform,
  { pool, offered }: PoolPolicies,
  request: Request,
  verdict: Verdict,
  cost: number,
): void {
  if (verdict.kind === 'rejected' && isNoDemand(verdict.refusal)) return
  const plan = verdict.kind === 'admitted' ? verdict.plan : verdict.nearest?.plan
  offered.observe(request.band, cost, plan?.estimate)
  if (request.band !== 'offline' || pool.isSpot === true) platform.autoscaling.asked(pool.id)
}

function isNoDemand({ code, blame }: { readonly code: string; readonly blame: string }): boolean {
  return blame === 'request' || OWN_BUDGET.has(code)
}

const OWN_BUDGET: ReadonlySet<string> = new Set([
  'rate-limit-requests',
  'rate-limit-tokens',
  'concurrency-limit',
  'budget-exhausted',
  'limits-unknown',
])
