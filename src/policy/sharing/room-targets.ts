import { assert } from '../../base/assert.ts'
import type { WeightFactors } from '../../domain/pool-share.ts'

/**
 * How many slots of a pool should each gateway have, and how much should each tenant weigh there, so that the pool as a
 * whole is shared by the tenants' weights?
 *
 * First what each key should have of the whole pool, whichever gateways its requests reached: the tree of shares (org,
 * tenant, key) is filled from above. Among siblings those with little demand get what they ask for, and the others share
 * the rest by weight (max-min). Weights are for work, and slots are time: a sibling whose work holds its slots for longer
 * needs more of them for the same share, so its weight is multiplied by its time per cost.
 *
 * Then where: a key's slots are divided between the gateways as its demand is (turns that run and tickets that wait).
 *
 *     d_g(key) = demand at g ÷ demand      slots of g = Σ slots(key) · d_g(key)
 *     d_g(node) = Σ slots(child) · d_g(child) ÷ Σ slots(child)      local weight = w · d_g(node), within [w ÷ 2N, w]
 *
 * A tenant that waits at four gateways would otherwise get four shares, one that waits at one gateway one. The clamp keeps
 * a tenant from being starved by a report that is out of date. Slots that nobody asks for are given to where work is, and
 * a quarter of them to all alike, so that a gateway without work can begin at once.
 *
 * Laws: L7 for the fleet (docs/architecture/laws.md). Deliberately not: nothing here holds or grants a slot
 * (`room-grants.ts`), and orgs of tenants that wait nowhere are not looked at.
 *
 * Example: A waits with 100 at each of four gateways, B with 400 at the first; equal weights, 64 slots. Each gets 32. The
 * first gateway has 8 + 32 slots and weighs A ¼ and B 1; the others have 8 each, all A's.
 */
export interface LaneDemand {
  readonly orgId: string
  readonly orgWeight: number | undefined
  readonly tenantId: string
  readonly tenantWeight: number
  readonly keyId: string
  readonly keyWeight: number
  /** Time that its work holds a slot, for each unit of cost; 1 where that is not known. */
  readonly usPerCost: number
  /** Slots that it could use, at each gateway. */
  readonly demand: ReadonlyMap<string, number>
}

export interface PoolTargets {
  /** Part of the pool for each gateway; the parts add up to 1. */
  readonly parts: ReadonlyMap<string, number>
  /** What weights are multiplied with at the gateway that asked. */
  readonly factors: WeightFactors
}

/** Of the slots that nobody asks for, the part that all gateways get alike. */
const ALIKE_RATIO = 0.25

interface Node {
  readonly id: string
  readonly weight: number
  readonly children: Node[]
  readonly lane: LaneDemand | undefined
  demand: number
  slots: number
  /** The slots of the gateway that asked. */
  own: number
}

/** `gatewayIds` are all live gateways, `ownId` among them; `slots` is what the pool runs at once. */
export function poolTargets(
  lanes: readonly LaneDemand[],
  { gatewayIds, ownId, gatewayCount, slots }: TargetsQuestion,
): PoolTargets {
  assert(gatewayCount >= 1 && gatewayIds.includes(ownId), 'a gateway counts itself')
  const root = treeOf(lanes)
  fill(root, Math.min(slots, root.demand))
  const bySlots = new Map(gatewayIds.map((id) => [id, 0]))
  place(root, ownId, (id, count) => bySlots.set(id, (bySlots.get(id) ?? 0) + count))
  const used = [...bySlots.values()].reduce((sum, count) => sum + count, 0)
  const spare = Math.max(0, slots - used)
  const alike = (used === 0 ? spare : spare * ALIKE_RATIO) / gatewayIds.length
  const parts = new Map<string, number>()
  for (const [id, count] of bySlots) {
    const byWork = used === 0 ? 0 : (spare * (1 - ALIKE_RATIO) * count) / used
    parts.set(id, slots <= 0 ? 1 / gatewayIds.length : (count + alike + byWork) / Math.max(slots, used))
  }
  return { parts, factors: factorsOf(root, 1 / (2 * gatewayCount)) }
}

export interface TargetsQuestion {
  readonly gatewayIds: readonly string[]
  readonly ownId: string
  /** N of the clamp: silent gateways included. */
  readonly gatewayCount: number
  readonly slots: number
}

function treeOf(lanes: readonly LaneDemand[]): Node {
  const orgs = new Map<string, Map<string, LaneDemand[]>>()
  for (const lane of lanes) {
    const tenants = orgs.get(lane.orgId) ?? new Map<string, LaneDemand[]>()
    orgs.set(lane.orgId, tenants)
    const keys = tenants.get(lane.tenantId)
    if (keys === undefined) tenants.set(lane.tenantId, [lane])
    else keys.push(lane)
  }
  return parentOf(
    '',
    1,
    Array.from(orgs, ([orgId, byTenant]) => {
      const tenants = Array.from(byTenant, ([tenantId, keys]) =>
        parentOf(tenantId, (keys[0] as LaneDemand).tenantWeight, keys.map(leafOf)),
      )
      const [[first]] = [...byTenant.values()] as [LaneDemand[]]
      const ownWeight = (first as LaneDemand).orgWeight
      const active = tenants.reduce((sum, { weight, demand }) => sum + (demand > 0 ? weight : 0), 0)
      return parentOf(orgId, ownWeight ?? active, tenants)
    }),
  )
}

function leafOf(lane: LaneDemand): Node {
  let demand = 0
  for (const count of lane.demand.values()) demand += count
  return { id: lane.keyId, weight: lane.keyWeight, children: [], lane, demand, slots: 0, own: 0 }
}

function parentOf(id: string, weight: number, children: Node[]): Node {
  const demand = children.reduce((sum, child) => sum + child.demand, 0)
  return { id, weight, children, lane: undefined, demand, slots: 0, own: 0 }
}

/** Time per cost of what a node asks for. */
function usPerCostOf(node: Node): number {
  if (node.lane !== undefined) return node.lane.usPerCost
  let sum = 0
  for (const child of node.children) sum += child.demand * usPerCostOf(child)
  return node.demand === 0 ? 1 : sum / node.demand
}

/** Max-min among the children, at every level. */
function fill(node: Node, slots: number): void {
  node.slots = slots
  const wanting = node.children
    .filter(({ demand }) => demand > 0)
    .map((child) => ({ child, weight: child.weight * usPerCostOf(child) }))
    .toSorted((a, b) => a.child.demand / a.weight - b.child.demand / b.weight)
  let left = slots
  let weights = wanting.reduce((sum, { weight }) => sum + weight, 0)
  for (const { child, weight } of wanting) {
    const given = weights <= 0 ? 0 : Math.min(child.demand, (left * weight) / weights)
    fill(child, given)
    left -= given
    weights -= weight
  }
}

/** Where each key's slots are; returns those of the gateway that asked. */
function place(node: Node, ownId: string, give: (gatewayId: string, slots: number) => void): number {
  if (node.lane === undefined) node.own = node.children.reduce((sum, child) => sum + place(child, ownId, give), 0)
  else if (node.demand > 0) {
    for (const [gatewayId, count] of node.lane.demand) give(gatewayId, (node.slots * count) / node.demand)
    node.own = (node.slots * (node.lane.demand.get(ownId) ?? 0)) / node.demand
  }
  return node.own
}

function factorsOf(root: Node, least: number): WeightFactors {
  const factors = {
    orgs: new Map<string, number>(),
    tenants: new Map<string, number>(),
    keys: new Map<string, number>(),
  }
  const put = (into: Map<string, number>, { id, own, slots }: Node): void => {
    if (slots > 0) into.set(id, Math.max(least, Math.min(1, own / slots)))
  }
  for (const org of root.children) {
    put(factors.orgs, org)
    for (const tenant of org.children) {
      put(factors.tenants, tenant)
      // A tenant's only key has nobody beside it.
      if (tenant.children.length > 1) for (const key of tenant.children) put(factors.keys, key)
    }
  }
  return factors
}

export interface SlotsQuestion {
  readonly parts: ReadonlyMap<string, number>
  /** Slots that may be given out, by replica. */
  readonly limits: ReadonlyMap<string, number>
  /** By gateway: how long it has waited without any slot, in seconds. Among equals those go first. */
  readonly starvedS: ReadonlyMap<string, number>
}

/**
 * Whole slots at each replica, by gateway: `result.get(replica).get(gateway)`. At every replica they add up to its limit;
 * what rounding takes at one replica it gives at the next. Every gateway that computes this from the same reports gets the
 * same. A pool with eight slots and more for each gateway leaves none without a slot. With fewer slots than gateways the
 * one that has waited longest is next, so whole slots go round.
 */
export function slotsByReplica({ parts, limits, starvedS }: SlotsQuestion): Map<string, Map<string, number>> {
  const total = [...limits.values()].reduce((sum, limit) => sum + limit, 0)
  const least = total >= 8 * parts.size ? 1 : 0
  const ids = [...parts.keys()].toSorted()
  const wanted = ids.map((id) => Math.max(least, total * (parts.get(id) ?? 0)))
  const sum = wanted.reduce((all, one) => all + one, 0)
  const carry = ids.map(() => 0)
  const result = new Map<string, Map<string, number>>()
  for (const [replicaId, limit] of limits) {
    const exact = ids.map((_, i) => (sum === 0 ? 0 : ((wanted[i] ?? 0) / sum) * limit) + (carry[i] ?? 0))
    const whole = wholeSlots(limit, exact, (i) => Math.min(1, starvedS.get(ids[i] ?? '') ?? 0))
    for (const i of ids.keys()) carry[i] = (exact[i] ?? 0) - (whole[i] ?? 0)
    result.set(replicaId, new Map(ids.map((id, i) => [id, whole[i] ?? 0])))
  }
  return result
}

/** Whole numbers near `exact` that add up to `total`: by the largest remainder, and by `favour` among near ones. */
export function wholeSlots(total: number, exact: readonly number[], favour: (i: number) => number = () => 0): number[] {
  const whole = exact.map((slots) => Math.max(0, Math.floor(slots + 1e-9)))
  let left = total - whole.reduce((a, b) => a + b, 0)
  const order = [...exact.keys()].toSorted((a, b) => rank(b) - rank(a) || a - b)
  function rank(i: number): number {
    return (exact[i] ?? 0) - (whole[i] ?? 0) + favour(i)
  }
  for (let k = 0; left > 0 && order.length > 0; k = (k + 1) % order.length, left--) {
    const i = order[k] as number
    whole[i] = (whole[i] ?? 0) + 1
  }
  // Carried remainders may have made the whole numbers too many: those that are least owed give back.
  for (let k = order.length - 1; left < 0 && k >= 0; k--) {
    const i = order[k] as number
    const back = Math.min(whole[i] ?? 0, -left)
    whole[i] = (whole[i] ?? 0) - back
    left += back
  }
  return whole
}
