import { PeerOutlook } from './peer-outlook.ts'

/**
 * How soon would another region begin that has several gateways? Each gateway has an outlook of its own: it tells its own
 * queue and its part of the engines, is sent its own requests, and fails alone. The region is as good as the best of
 * them, so that the loss of one gateway of a region is no loss of the region.
 *
 * The best is one that answered when it was last asked and has not just failed; among those the one with the shortest
 * wait. When every gateway has just failed, the region stands back with them.
 *
 * Deliberately not: it does not choose the gateway that a request is sent to. The placer does, as among the replicas of
 * any pool, by health, room and measured slowness.
 *
 * Example: gateways a with 300 ms of wait and b with 100 ms: the region has 100 ms. b breaks off: 300 ms for half a second.
 */

/** Gateways that are remembered; four times the addresses that a region can have, so that only those that left are forgotten. */
export const REGION_GATEWAYS_MAX = 64

export class RegionOutlook {
  readonly #roundTripUs: number | undefined
  readonly #byGateway = new Map<string, PeerOutlook>()
  /** Of a region of which nothing is known. */
  readonly #nothing: PeerOutlook

  constructor(roundTripUs?: number) {
    this.#roundTripUs = roundTripUs
    this.#nothing = new PeerOutlook(roundTripUs)
  }

  /** The outlook of one gateway, by its replica id. */
  of(gatewayId: string): PeerOutlook {
    const known = this.#byGateway.get(gatewayId)
    if (known !== undefined) return known
    const made = new PeerOutlook(this.#roundTripUs)
    this.#byGateway.set(gatewayId, made)
    // A map keeps its keys in the order of insertion: the first is the oldest.
    if (this.#byGateway.size > REGION_GATEWAYS_MAX)
      this.#byGateway.delete(this.#byGateway.keys().next().value as string)
    return made
  }

  /** The outlook of the gateway that would begin soonest. */
  at(now: number): PeerOutlook {
    let best: PeerOutlook | undefined
    for (const one of this.#byGateway.values()) if (best === undefined || isBetter(now, one, best)) best = one
    return best ?? this.#nothing
  }
}

function isBetter(now: number, one: PeerOutlook, other: PeerOutlook): boolean {
  const [rank, otherRank] = [rankOf(now, one), rankOf(now, other)]
  return rank === otherRank ? one.waitUs(now) < other.waitUs(now) : rank < otherRank
}

/** 0 is best. News that are old or tell of no ready replica weigh more than a failure, which is over in two seconds. */
function rankOf(now: number, one: PeerOutlook): number {
  if (one.readyReplicaCount(now) === 0) return 3
  if (one.isSilent) return 2
  return one.isStandingBack(now) ? 1 : 0
}
