import { assert } from '../../base/assert.ts'

/**
 * How many slots of a pool should this gateway have, and how much should each tenant weigh here, so that the pool as a
 * whole is shared by the tenants' weights?
 *
 * A tenant that waits at four gateways would get four shares, one that waits at one gateway one. So a gateway weighs each
 * node of the fairness tree by the part of its backlog that waits here, leaves first:
 *
 *     d_g(lane) = b_g ÷ b      d_g(node) = Σ w_c·d_g(c) ÷ Σ w_c   over its children that have a backlog anywhere
 *     local weight = w · d_g(node), within [w ÷ 2N, w]            slots of the gateway = L · d_g(root)
 *
 * Backlogs are those that gateways last told each other (`room-grants.ts`). The clamp keeps a tenant from being starved
 * here by a report that is out of date. Slots become whole by the largest remainder, for all gateways in one way, so that
 * they sum to L; where there are fewer slots than gateways, those with the most demand have them.
 *
 * Laws: L7 for the fleet (docs/architecture/laws.md). Deliberately not: nothing here holds or grants a slot.
 *
 * Example: A waits with 10 at each of four gateways, B with 40 at the first; equal weights, 64 slots. d_1(A) = ¼,
 * d_1(B) = 1, so the first gateway has (¼ + 1) ÷ 2 · 64 = 40 slots and weighs A ¼ and B 1; the others have 8 each, all
 * A's. A gets 8 + 3 · 8 = 32 and B 32.
 */
export interface BacklogNode {
  readonly id: string
  readonly weight: number
  /** Lanes have none. */
  readonly children: readonly BacklogNode[]
  /** A lane's backlog at each gateway. */
  readonly backlog?: ReadonlyMap<string, number>
}

export interface LocalShares {
  /** The gateway's part of the pool, 0 … 1. */
  readonly ratio: number
  /** Local weights by node; nodes without a backlog anywhere keep their weight and are left out. */
  readonly weights: ReadonlyMap<string, number>
}

export function localShares(root: BacklogNode, gatewayId: string, gatewayCount: number): LocalShares {
  assert(gatewayCount >= 1, 'a gateway counts itself')
  const weights = new Map<string, number>()
  const visit = (node: BacklogNode): number | undefined => {
    const ratio = node.backlog === undefined ? ratioOf(node.children, visit) : partHere(node.backlog, gatewayId)
    if (ratio !== undefined) weights.set(node.id, node.weight * Math.max(1 / (2 * gatewayCount), ratio))
    return ratio
  }
  const ratio = visit(root) ?? 0
  weights.delete(root.id)
  return { ratio, weights }
}

function ratioOf(
  children: readonly BacklogNode[],
  visit: (child: BacklogNode) => number | undefined,
): number | undefined {
  let [sum, weight] = [0, 0]
  for (const child of children) {
    const ratio = visit(child)
    if (ratio === undefined) continue
    sum += child.weight * ratio
    weight += child.weight
  }
  return weight === 0 ? undefined : sum / weight
}

function partHere(backlog: ReadonlyMap<string, number>, gatewayId: string): number | undefined {
  let all = 0
  for (const waiting of backlog.values()) all += waiting
  return all === 0 ? undefined : (backlog.get(gatewayId) ?? 0) / all
}

/** Whole slots by the largest remainder; every gateway that computes this from the same ratios gets the same. */
export function wholeSlots(total: number, ratios: ReadonlyMap<string, number>): Map<string, number> {
  const sum = [...ratios.values()].reduce((a, b) => a + b, 0)
  const exact = [...ratios].map(([id, ratio]) => ({
    id,
    slots: sum === 0 ? total / ratios.size : (total * ratio) / sum,
  }))
  const whole = new Map(exact.map(({ id, slots }) => [id, Math.floor(slots)]))
  let left = total - [...whole.values()].reduce((a, b) => a + b, 0)
  const byRemainder = exact.toSorted(
    (a, b) => (b.slots % 1) - (a.slots % 1) || b.slots - a.slots || (a.id < b.id ? -1 : 1),
  )
  for (const { id } of byRemainder) {
    if (left-- <= 0) break
    whole.set(id, (whole.get(id) ?? 0) + 1)
  }
  return whole
}

/** The slots of one gateway over replicas, in proportion to their limits; of equal remainders the first have more. */
export function slotsByReplica(slots: number, limits: ReadonlyMap<string, number>): Map<string, number> {
  const given = wholeSlots(slots, limits)
  for (const [id, count] of given) given.set(id, Math.min(count, limits.get(id) ?? 0))
  return given
}
