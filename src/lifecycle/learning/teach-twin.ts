import { prefillTokensOf } from '../../policy/limits/ledger.ts'
import { timesUnderLoad } from '../../policy/twin/times-under-load.ts'
import type { Platform } from '../platform.ts'
import type { ReplicaReport } from '../ports.ts'
import type { Attempt } from '../ticket.ts'
import { Lesson } from './lesson.ts'

/** What an attempt expects of its replica at its turn, and what its replica's twin learns from it. */
export function beginLesson({ policies, world }: Platform, attempt: Attempt): void {
  // What passes through unread is no prompt, whatever its price.
  if (attempt.ticket.request.kind === 'transit') return
  const { replica } = attempt.lease
  const { estimate } = attempt.plan
  const pool = policies.poolsById.get(replica.poolId)
  const load = policies.dispatcher.loadOf(replica.id)
  if (pool === undefined || load === undefined) return
  const { alone, steps } = pool.engineOf(replica)
  if (steps === undefined) return
  const { promptTokens, cachedTokens } = estimate
  const own = { promptTokens, cachedTokens, plannedTokens: prefillTokensOf(estimate) }
  attempt.firstTokenExpectedUs = timesUnderLoad(alone, steps, load, own).ttftUs
  const { twins } = pool
  if (twins === undefined) return
  attempt.isBuffered = twins.buffered.isUsual
  attempt.lesson = new Lesson(world.clock.now(), { twins, replicaId: replica.id, estimate, load })
}

/** What the engine says of itself: its ceiling, and how much memory its room has. */
export function teachGauges({ policies, world, turnstile }: Platform, replicaId: string, report: ReplicaReport): void {
  const poolId = policies.fleet.replica(replicaId)?.poolId
  const twins = poolId === undefined ? undefined : policies.poolsById.get(poolId)?.twins
  if (twins === undefined) return
  const now = world.clock.now()
  const { ceiling, kv } = twins.of(replicaId)
  const holdings = policies.dispatcher.holdingsOf(replicaId)
  const hasChanged = holdings !== undefined && twins.reportKv(now, replicaId, report, holdings)
  ceiling.report(now, kv.countsCache ? { ...report, kvUsageRatio: undefined } : report)
  if (!hasChanged) return
  turnstile.replicaChanged(replicaId, { kv: kv.capacity ?? UNKNOWN_KV })
}

const UNKNOWN_KV = { tokensMax: Number.POSITIVE_INFINITY, isTold: false }
