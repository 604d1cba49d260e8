import type { Instant } from '../../base/clock.ts'
import { unitOf } from '../../base/rng.ts'
import { promptTokensOf, type Request } from '../../domain/request.ts'
import { choosePool, type PoolChoice, type PoolOption } from '../../policy/routing/choose-pool.ts'
import type { Policies } from '../policies.ts'
import { whyPoolDenies } from './denied-pool.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * Which of a release's pools would run this request? Most releases have one pool. Where there are several, or other
 * regions' gateways besides, routing chooses by predicted time to the first token, local pools first; a pool without a
 * ready replica, or whose engines deny us, is passed over, so losing one pool loses no request that has not started.
 */
export function pickPool(
  policies: Policies,
  now: Instant,
  request: Request,
  releaseId: string,
): PoolPolicies | undefined {
  const pools = poolsOf(policies, request, releaseId)
  const [only] = pools
  if (only === undefined || (pools.length === 1 && only.pool.dedicatedTo === undefined)) return only
  return poolIn(policies, choose(policies, now, request, pools))
}

/** The best pool other than this one; undefined when no other has a ready replica. */
export function pickOtherPool(
  policies: Policies,
  now: Instant,
  request: Request,
  releaseId: string,
  poolId: string,
): PoolPolicies | undefined {
  const others = poolsOf(policies, request, releaseId).filter(({ pool }) => pool.id !== poolId)
  if (others.length === 0) return undefined
  const choice = choose(policies, now, request, others)
  return choice === undefined || choice.option.readyReplicaCount === 0 ? undefined : poolIn(policies, choice)
}

/** The best of the other regions; undefined when none is alive and taking requests. */
export function pickOtherRegion(
  policies: Policies,
  now: Instant,
  request: Request,
  releaseId: string,
): PoolPolicies | undefined {
  const away = poolsOf(policies, request, releaseId).filter(({ isLocal }) => !isLocal)
  if (away.length === 0) return undefined
  const choice = choose(policies, now, request, away)
  if (choice === undefined || choice.option.readyReplicaCount === 0 || choice.option.isShedding) return undefined
  return poolIn(policies, choice)
}

/** The release's pools here, then the other regions that may have the model. */
function poolsOf(policies: Policies, request: Request, releaseId: string): readonly PoolPolicies[] {
  const own = forBand(policies, request, policies.poolsByRelease.get(releaseId) ?? NO_POOLS)
  const model = policies.releases.get(releaseId)?.model
  const peers = model === undefined ? NO_POOLS : peersFor(policies, request, model)
  return peers.length === 0 ? own : [...own, ...peers]
}

/** Spot replicas get offline work only, and offline work goes to them while one is ready. */
function forBand(policies: Policies, { band }: Request, pools: readonly PoolPolicies[]): readonly PoolPolicies[] {
  if (!pools.some(({ pool }) => pool.isSpot === true)) return pools
  if (band !== 'offline') return pools.filter(({ pool }) => pool.isSpot !== true)
  const ready = pools.filter(
    ({ pool }) => pool.isSpot === true && (policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0) > 0,
  )
  return ready.length > 0 ? ready : pools
}

const NO_POOLS: readonly PoolPolicies[] = []

/**
 * Regions that a request may be sent on to. Embeddings stay here, because vectors of the release that another region
 * runs cannot be compared with ours; so do the platform's own errands, which are about a release of ours.
 */
function peersFor({ fleet, models }: Policies, { errand }: Request, model: string): readonly PoolPolicies[] {
  const isSentOn = errand === undefined && models.get(model)?.kind !== 'embedding'
  return isSentOn ? (fleet.peersByModel.get(model) ?? NO_POOLS) : NO_POOLS
}

/** Whether another region may run the model that was asked for. */
export function hasUsablePeer(policies: Policies, request: Request): boolean {
  if ((request.hops ?? 0) >= policies.poolChoice.hopsMax) return false
  return peersFor(policies, request, request.model).some(
    ({ pool }) => (policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0) > 0,
  )
}

function choose(
  policies: Policies,
  now: Instant,
  request: Request,
  pools: readonly PoolPolicies[],
): PoolChoice | undefined {
  const ask = { tenantId: request.tenant.id, hops: request.hops ?? 0, random: unitOf(request.id) }
  const options = pools.map((pool) => optionOf(policies, now, request, pool))
  return choosePool(now, ask, options, policies.poolChoice)
}

function poolIn({ poolsById }: Policies, choice: PoolChoice | undefined): PoolPolicies | undefined {
  return choice === undefined ? undefined : poolsById.get(choice.option.poolId)
}

function optionOf(policies: Policies, now: Instant, request: Request, known: PoolPolicies): PoolOption {
  const { pool, speed, shedding, presence } = known
  const outlook = known.outlook?.at(now)
  const promptTokens = promptTokensOf(request)
  const waitUs = waitOf(policies, now, request, known)
  const isDenied = whyPoolDenies(policies, now, request, known) !== undefined
  const readyReplicaCount = isDenied ? 0 : (policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0)
  const isOffline = request.band === 'offline'
  const option = {
    poolId: pool.id,
    region: pool.region,
    isLocal: known.isLocal,
    ...(pool.dedicatedTo !== undefined && { dedicatedTo: pool.dedicatedTo }),
    ...(presence.returnedAt !== undefined && { returnedAt: presence.returnedAt }),
  }
  if (outlook === undefined) {
    const ttftUs = waitUs + speed.prefillUs(promptTokens, 0)
    const isShedding = isOffline && shedding.isShed
    return { ...option, readyReplicaCount, ttftUs, roundTripUs: known.roundTripUs, isShedding }
  }
  return {
    ...option,
    readyReplicaCount: readyReplicaCount === 0 ? 0 : outlook.readyReplicaCount(now),
    ttftUs: waitUs + outlook.waitUs(now) + outlook.prefillUs(promptTokens),
    roundTripUs: outlook.roundTripUs,
    isShedding: outlook.isStandingBack(now) || (isOffline && outlook.isShedding),
  }
}

/** Predicted wait in this gateway's own queue. */
function waitOf(policies: Policies, now: Instant, request: Request, { pool, wait }: PoolPolicies): number {
  const facts = policies.dispatcher.poolFacts(pool.id)
  return wait.waitUs(now, {
    share: policies.dispatcher.scaledShare(pool.id, policies.standings.of(request).share),
    band: request.band,
    cost: promptTokensOf(request),
    hasRoom: (facts?.openReplicaCount ?? 0) > 0,
    replicaCount: facts?.replicaParts ?? 0,
  })
}
