import { Rng } from '../../../src/base/rng.ts'
import { DeficitRoundRobin } from '../../../src/policy/fairness/deficit-round-robin.ts'
import { MedianCost } from '../../../src/policy/fairness/median-cost.ts'
import { Share } from '../../../src/policy/fairness/share.ts'
import { RoomShard } from '../../../src/policy/sharing/room-grants.ts'
import { type LaneDemand, poolTargets, wholeSlots } from '../../../src/policy/sharing/room-targets.ts'

/**
 * Slots of one pool that several gateways share, saturated, in virtual time: the real order of turns, room targets and
 * room grants, around a plain model of work (a turn holds a slot for a while). Gateways exchange reports every 100 ms.
 */
export type RoomWay = 'alone' | 'static' | 'room' | 'room and weights'

export interface RoomTenant {
  readonly weight: number
  /** Gateways at which the tenant waits. */
  readonly homes: readonly number[]
}

export interface SharedRoomOptions {
  readonly seed: number
  readonly way: RoomWay
  readonly gatewayCount: number
  readonly slots: number
  readonly tenants: readonly RoomTenant[]
  readonly seconds: number
}

export interface SharedRoomResult {
  /** Jain's index of served work per weight. */
  readonly jain: number
  /** The least share ÷ what the tenant is entitled to. */
  readonly worst: number
  readonly inFlightMax: number
}

const STEP_US = 5_000
const REPORT_US = 100_000
const WORK_US = 400_000
/** Every tenant has this many requests waiting at each of its gateways, always. */
const BACKLOG = 50

interface Gateway {
  readonly id: string
  readonly siblings: DeficitRoundRobin<Share>
  readonly shares: Map<string, Share>
  /** Ends of the turns that are running. */
  running: { readonly endsAt: number }[]
  allowance: number
}

export function playSharedRoom(options: SharedRoomOptions): SharedRoomResult {
  const { way, gatewayCount, slots, tenants, seconds } = options
  const rng = Rng.stream(options.seed, 'shared room')
  const store = new RoomShard()
  const gateways = Array.from({ length: gatewayCount }, (_, g) => makeGateway(g, tenants))
  const served = tenants.map(() => 0)
  const lanes = lanesOf(tenants)
  let inFlightMax = 0
  for (const gateway of gateways)
    gateway.allowance = way === 'alone' ? slots : way === 'static' ? slots / gatewayCount : 0
  for (let now = STEP_US; now < seconds * 1_000_000; now += STEP_US) {
    for (const gateway of gateways) gateway.running = gateway.running.filter(({ endsAt }) => endsAt > now)
    if (now % REPORT_US === 0 && (way === 'room' || way === 'room and weights'))
      for (const gateway of gateways) exchange(gateway, { now, store, lanes, options })
    for (const gateway of gateways) {
      while (gateway.running.length < gateway.allowance) {
        const share = gateway.siblings.first()
        if (share === undefined) break
        const workUs = Math.round(WORK_US * (0.25 + 1.5 * rng.next()))
        gateway.siblings.takeTurn(share, workUs)
        gateway.running.push({ endsAt: now + workUs })
        // The first seconds fill the slots.
        if (now > 2_000_000) served[Number(share.id)] = (served[Number(share.id)] ?? 0) + workUs
      }
    }
    inFlightMax = Math.max(
      inFlightMax,
      gateways.reduce((sum, { running }) => sum + running.length, 0),
    )
  }
  return { ...fairnessOf(served, tenants), inFlightMax }
}

function makeGateway(g: number, tenants: readonly RoomTenant[]): Gateway {
  const siblings = new DeficitRoundRobin<Share>(new MedianCost())
  const shares = new Map<string, Share>()
  for (const [t, { weight, homes }] of tenants.entries()) {
    if (!homes.includes(g)) continue
    const share = new Share(String(t), weight)
    siblings.enter(share)
    shares.set(share.id, share)
  }
  return { id: `g${g}`, siblings, shares, running: [], allowance: 0 }
}

function exchange(
  gateway: Gateway,
  world: { now: number; store: RoomShard; lanes: readonly LaneDemand[]; options: SharedRoomOptions },
): void {
  const { now, store, lanes, options } = world
  const { gatewayCount, slots, way } = options
  const gatewayIds = Array.from({ length: gatewayCount }, (_, g) => `g${g}`)
  const { parts, factors } = poolTargets(lanes, { gatewayIds, ownId: gateway.id, gatewayCount, slots })
  // Room by backlog alone: each gateway's part of all that waits, whoever it is.
  const waiting = gatewayIds.map((id) => backlogAt(lanes, id))
  const all = waiting.reduce((sum, one) => sum + one, 0)
  const exact = gatewayIds.map((id, g) => slots * (way === 'room' ? (waiting[g] ?? 0) / all : (parts.get(id) ?? 0)))
  const target = wholeSlots(slots, exact)[gatewayIds.indexOf(gateway.id)] ?? 0
  if (way === 'room and weights') {
    for (const [id, factor] of factors.tenants) {
      const share = gateway.shares.get(id)
      if (share !== undefined) gateway.siblings.reweigh(share, factor * (options.tenants[Number(id)]?.weight ?? 1))
    }
  }
  gateway.allowance = Math.min(gateway.allowance, target)
  const member = { id: gateway.id, epoch: '', told: 0, ttlMs: 1_000, forgetMs: 600_000 }
  const held = gateway.running.length
  const ask = { name: 'replica', limit: slots, held, granted: gateway.allowance, target, sequence: now }
  const [granted = 0] = store.ask(now, member, { topic: 'pool', text: '' }, [ask]).granted
  if (granted >= 0) gateway.allowance = granted
}

const lanesOf = (tenants: readonly RoomTenant[]): LaneDemand[] =>
  tenants.map(({ weight, homes }, t) => ({
    orgId: String(t),
    orgWeight: undefined,
    tenantId: String(t),
    tenantWeight: weight,
    keyId: String(t),
    keyWeight: 1,
    usPerCost: 1,
    demand: new Map(homes.map((g) => [`g${g}`, BACKLOG])),
  }))

const backlogAt = (lanes: readonly LaneDemand[], id: string): number =>
  lanes.reduce((sum, { demand }) => sum + (demand.get(id) ?? 0), 0)

function fairnessOf(served: readonly number[], tenants: readonly RoomTenant[]): { jain: number; worst: number } {
  const perWeight = served.map((work, t) => work / (tenants[t]?.weight ?? 1))
  const sum = perWeight.reduce((a, b) => a + b, 0)
  const squares = perWeight.reduce((a, b) => a + b * b, 0)
  return { jain: (sum * sum) / (perWeight.length * squares), worst: (Math.min(...perWeight) * perWeight.length) / sum }
}

/** Tenants that wait at one to all of the gateways, by seed. */
export function drawHomes(seed: number, tenantCount: number, gatewayCount: number): RoomTenant[] {
  const rng = Rng.stream(seed, 'homes')
  return Array.from({ length: tenantCount }, () => {
    const homes = Array.from({ length: gatewayCount }, (_, g) => g).filter(() => rng.below(2) === 0)
    return { weight: 1, homes: homes.length === 0 ? [rng.below(gatewayCount)] : homes }
  })
}
