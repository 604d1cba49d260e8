import { US_PER_S } from '../../base/clock.ts'
import type { Entry, Settled } from '../../domain/entry.ts'

/**
 * Law L7 for the fleet (docs/architecture/laws.md): over any interval in which two tenants both have something waiting, at
 * whichever gateways, what they were served per weight differs by at most
 *
 *     N·b + 2·C·Δ
 *
 * b, the bound of one process, is that of deficit round robin through a dispatcher (`dispatcher.fairness.test.ts`): two
 * quanta, and the cost of a turn for each of its slots and two more, per weight of either tenant; the slots of all processes
 * are those of the pool. C is the most that the pool served in one second, Δ the age of what gateways know of each other:
 * two exchanges and their way, and as long as faults keep them from the store.
 *
 * Work counts when a ticket ends, with its true cost. Not compared: offline work, which has no share; tenants of different
 * orgs that have siblings. Memory: a record for each pair of tenants that waited at a pool, TENANTS_MAX tenants at most.
 */
export interface FleetFairnessOptions {
  readonly gatewayCount: number
  /** Δ, in seconds. */
  readonly reportAgeS: number
  readonly weightOf: (tenantId: string) => number
  /** Tenants are compared with those of the same group. */
  readonly groupOf: (tenantId: string) => string
}

export interface FairnessFigures {
  /** Served per weight, in weighted tokens: the largest difference as a part of its bound, and both. */
  readonly ofBound: number
  readonly apart: number
  readonly bound: number
}

interface Sharer {
  readonly id: string
  readonly weight: number
  waiting: number
  served: number
}

interface Range {
  least: number
  most: number
  widest: number
}

interface PoolSharers {
  readonly sharers: Map<string, Sharer>
  readonly ranges: Map<string, Range>
  held: number
  heldMost: number
  costMax: number
  second: number
  secondCost: number
  rateMax: number
}

const TENANTS_MAX = 64
/** Quanta follow the median of predicted costs: four of it at most, and a median is no more than the largest. */
const QUANTUM_COSTS = 4

export class FleetFairness {
  readonly #options: FleetFairnessOptions
  readonly #pools = new Map<string, PoolSharers>()
  /** Tickets that wait for their first turn, or have had it. */
  readonly #followed = new Map<string, { readonly pool: PoolSharers; readonly sharer: Sharer; isWaiting: boolean }>()

  readonly #offline = new Set<string>()

  constructor(options: FleetFairnessOptions) {
    this.#options = options
  }

  take(entry: Entry): void {
    if (entry.kind === 'arrived' && entry.band === 'offline') this.#offline.add(entry.ticketId)
    else if (entry.kind === 'admitted') this.#admit(entry)
    else if (entry.kind === 'granted') this.#grant(entry.ticketId)
    else if (entry.kind === 'settled') this.#settle(entry)
  }

  /** The pair of tenants that is nearest to the bound, or furthest beyond it; undefined where no two ever waited. */
  figures(): (FairnessFigures & { readonly pair: string }) | undefined {
    let worst: (FairnessFigures & { readonly pair: string }) | undefined
    for (const pool of this.#pools.values()) {
      for (const [pair, { widest }] of pool.ranges) {
        const bound = this.#boundOf(pool, pair)
        const ofBound = bound === 0 ? 0 : widest / bound
        if (worst === undefined || ofBound > worst.ofBound) worst = { pair, ofBound, apart: widest, bound }
      }
    }
    return worst
  }

  #admit({ ticketId, tenantId, poolId }: Extract<Entry, { kind: 'admitted' }>): void {
    if (this.#offline.has(ticketId) || this.#followed.has(ticketId)) return
    const pool = this.#pools.get(poolId) ?? newPool()
    this.#pools.set(poolId, pool)
    const sharer = pool.sharers.get(tenantId) ?? this.#newSharer(tenantId)
    if (!pool.sharers.has(tenantId) && pool.sharers.size >= TENANTS_MAX) return
    pool.sharers.set(tenantId, sharer)
    this.#followed.set(ticketId, { pool, sharer, isWaiting: true })
    if (sharer.waiting++ === 0) this.#begin(pool, sharer)
  }

  #grant(ticketId: string): void {
    const followed = this.#followed.get(ticketId)
    if (followed?.isWaiting !== true) return
    followed.isWaiting = false
    followed.sharer.waiting--
    followed.pool.heldMost = Math.max(followed.pool.heldMost, ++followed.pool.held)
  }

  #settle({ ticketId, at, cost }: Settled): void {
    this.#offline.delete(ticketId)
    const followed = this.#followed.get(ticketId)
    if (followed === undefined) return
    this.#followed.delete(ticketId)
    const { pool, sharer } = followed
    if (followed.isWaiting) sharer.waiting--
    else pool.held--
    if (cost === 0) return
    sharer.served += cost / sharer.weight
    pool.costMax = Math.max(pool.costMax, cost)
    countRate(pool, Math.floor(at / US_PER_S), cost)
    if (sharer.waiting > 0) for (const other of this.#rivalsOf(pool, sharer)) note(pool, sharer, other)
  }

  /** It waits again: from here on it is compared anew. */
  #begin(pool: PoolSharers, sharer: Sharer): void {
    for (const other of this.#rivalsOf(pool, sharer)) {
      const apart = apartOf(sharer, other)
      const key = pairOf(sharer, other)
      pool.ranges.set(key, { least: apart, most: apart, widest: pool.ranges.get(key)?.widest ?? 0 })
    }
  }

  *#rivalsOf(pool: PoolSharers, { id }: Sharer): Iterable<Sharer> {
    const { groupOf } = this.#options
    const group = groupOf(id)
    for (const other of pool.sharers.values())
      if (other.waiting > 0 && other.id !== id && groupOf(other.id) === group) yield other
  }

  #boundOf({ costMax, heldMost, rateMax }: PoolSharers, pair: string): number {
    const { gatewayCount, reportAgeS, weightOf } = this.#options
    const [a = '', b = ''] = pair.split(SEPARATOR)
    const perWeights = 1 / weightOf(a) + 1 / weightOf(b)
    const processes = 2 * gatewayCount * QUANTUM_COSTS * costMax + (heldMost + 2 * gatewayCount) * costMax * perWeights
    return processes + 2 * rateMax * reportAgeS * Math.max(1 / weightOf(a), 1 / weightOf(b))
  }

  #newSharer(id: string): Sharer {
    return { id, weight: this.#options.weightOf(id), waiting: 0, served: 0 }
  }
}

const SEPARATOR = '\n'

/** In the order of names, as `apartOf`. */
const pairOf = (a: Sharer, b: Sharer): string => (a.id < b.id ? a.id + SEPARATOR + b.id : b.id + SEPARATOR + a.id)
const apartOf = (a: Sharer, b: Sharer): number => (a.id < b.id ? a.served - b.served : b.served - a.served)

function note(pool: PoolSharers, sharer: Sharer, other: Sharer): void {
  const range = pool.ranges.get(pairOf(sharer, other))
  if (range === undefined) return
  const apart = apartOf(sharer, other)
  range.least = Math.min(range.least, apart)
  range.most = Math.max(range.most, apart)
  range.widest = Math.max(range.widest, range.most - range.least)
}

function countRate(pool: PoolSharers, second: number, cost: number): void {
  if (second !== pool.second) {
    pool.second = second
    pool.secondCost = 0
  }
  pool.secondCost += cost
  pool.rateMax = Math.max(pool.rateMax, pool.secondCost)
}

const newPool = (): PoolSharers => ({
  sharers: new Map(),
  ranges: new Map(),
  held: 0,
  heldMost: 0,
  costMax: 0,
  second: 0,
  secondCost: 0,
  rateMax: 0,
})
