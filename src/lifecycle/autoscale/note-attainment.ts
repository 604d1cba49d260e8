import type { Settled } from '../../domain/entry.ts'
import type { Platform } from '../platform.ts'
import { isPromiseKept } from '../promise-kept.ts'
import type { Ticket } from '../ticket.ts'

/**
 * A request ended: did the pool that it was for keep the promise? A request that was refused because the pool is full was
 * not served as promised either, and counts at the release's first pool where it had none. What a client called off, did
 * wrong or could not pay says nothing of the pool.
 */
export function noteAttainment({ policies }: Platform, ticket: Ticket, settled: Settled): void {
  const { outcome, refusal, at, poolId } = settled
  const { request, release } = ticket
  const isFull = outcome === 'rejected' && (refusal?.blame === 'platform' || refusal?.code === 'predicted-late')
  const isKept = isFull && request.errand === undefined ? false : isPromiseKept(ticket, outcome, at)
  if (isKept === undefined) return
  const known =
    (poolId === undefined ? undefined : policies.poolsById.get(poolId)) ??
    (release === undefined ? undefined : policies.poolsByRelease.get(release.release.id)?.[0])
  known?.attainment.observe(at, isKept)
}
