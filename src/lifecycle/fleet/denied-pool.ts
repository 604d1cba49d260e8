import type { Instant } from '../../base/clock.ts'
import type { Request } from '../../domain/request.ts'
import type { Policies } from '../policies.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * Why would this request be denied by every replica of the pool? Undefined when one of them may answer, when the request
 * is the pool's next trial, and for a pool without a usable replica, which is another matter.
 */
export function whyPoolDenies(
  { health }: Pick<Policies, 'health'>,
  now: Instant,
  { kind }: Request,
  { pool, denial }: PoolPolicies,
): string | undefined {
  const because = denial.because(now, kind)
  if (because === undefined) return undefined
  const usable = pool.replicas.filter(({ id }) => health.isUsable(id))
  return usable.length > 0 && usable.every(({ id }) => health.deniedBecause(id) !== undefined) ? because : undefined
}
