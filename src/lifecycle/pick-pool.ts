import type { Instant } from '../base/clock.ts'
import { fnv1a32 } from '../base/rng.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import { choosePool, type PoolOption } from '../policy/routing/choose-pool.ts'
import { type Policies, shareOf } from './policies.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * Which of a release's pools would run this request? Most have one. Where there are several, routing chooses by
 * predicted time to the first token, local ones first; a pool without a ready replica is passed over, so losing one
 * pool loses nobody who has not started.
 */
export function pickPool(
  policies: Policies,
  now: Instant,
  request: Request,
  releaseId: string,
): PoolPolicies | undefined {
  const pools = policies.poolsByRelease.get(releaseId)
  if (pools === undefined || (pools.length === 1 && pools[0]?.pool.dedicatedTo === undefined)) return pools?.[0]
  const ask = { tenantId: request.tenant.id, hops: 0, random: fnv1a32(request.id) / 2 ** 32 }
  const options = pools.map((pool) => optionOf(policies, now, request, pool))
  const chosen = choosePool(now, ask, options)
  return chosen === undefined ? undefined : policies.poolsById.get(chosen.option.poolId)
}

function optionOf(policies: Policies, now: Instant, request: Request, known: PoolPolicies): PoolOption {
  const { pool, wait, speed, shedding } = known
  const facts = policies.dispatcher.poolFacts(pool.id)
  const readyReplicaCount = facts?.readyReplicaCount ?? 0
  const promptTokens = promptTokensOf(request)
  const waitUs = wait.waitUs(now, {
    share: shareOf(request),
    band: request.band,
    cost: promptTokens,
    hasRoom: (facts?.openReplicaCount ?? 0) > 0,
    replicaCount: readyReplicaCount,
  })
  return {
    poolId: pool.id,
    region: pool.region,
    isLocal: true,
    readyReplicaCount,
    ttftUs: waitUs + speed.prefillUs(promptTokens, 0),
    roundTripUs: 0,
    isShedding: shedding.isShed,
    ...(pool.dedicatedTo !== undefined && { dedicatedTo: pool.dedicatedTo }),
  }
}
