import { engineOptionsOf } from '../assembly/engine-options.ts'
import { replicaPrices } from '../assembly/replica-price.ts'
import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { Config } from '../config/schema.ts'
import { type PoolSetup, profileOf, toPools } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Actuator, Actuators, ScaleAnswer, ScaleOrder } from '../lifecycle/autoscale-ports.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { SimulatedFleet } from './world.ts'

/**
 * The simulated actuator: replicas that are ordered are listed at once, start after a cold start drawn by the seed, and
 * are paid for from their order to their end. The simulator keeps the bill; no rule sees it.
 */
export interface ScalingView {
  readonly gpuHours: number
  readonly usd: number
  readonly orders: number
  /** Orders down after one up, or up after one down. */
  readonly turns: number
  readonly replicasMax: number
  readonly replicasMin: number
}

export interface ScalingWorld {
  readonly clock: Clock
  readonly seed: number
  readonly config: Config
  readonly fleet: SimulatedFleet
  readonly platforms: () => readonly Platform[]
  /** Of the scenario; the pools' own figures if absent. */
  readonly coldStartS: number | undefined
  readonly warmUntil: Instant
}

/** A start takes between this much less and this much more than usual. */
const START_SPREAD = 0.15

export class SimulatedScaling implements Actuators {
  readonly #world: ScalingWorld
  readonly #pools = new Map<string, SimulatedPool>()

  constructor(world: ScalingWorld) {
    this.#world = world
    for (const setup of toPools(world.config))
      if (setup.pool.autoscale !== undefined) this.#pools.set(setup.pool.id, new SimulatedPool(world, setup))
  }

  of(poolId: string): Actuator | undefined {
    return this.#pools.get(poolId)
  }

  /** By pool; of pools that are not scaled nothing. */
  view(endAt: Instant): Readonly<Record<string, ScalingView>> | undefined {
    if (this.#pools.size === 0) return undefined
    return Object.fromEntries(Array.from(this.#pools, ([id, pool]) => [id, pool.view(endAt, this.#world.warmUntil)]))
  }
}

interface Paid {
  readonly replica: Replica
  readonly from: Instant
  until: Instant | undefined
  cancelStart: () => void
}

class SimulatedPool implements Actuator {
  readonly #world: ScalingWorld
  readonly #setup: PoolSetup
  readonly #rng: Rng
  readonly #paid: Paid[]
  #next: number
  #orders = 0
  #turns = 0
  #direction = 0
  #most: number
  #least: number

  constructor(world: ScalingWorld, setup: PoolSetup) {
    this.#world = world
    this.#setup = setup
    this.#rng = Rng.stream(world.seed, `cold-starts of ${setup.pool.id}`)
    const { replicas } = setup.pool
    this.#paid = replicas.map((replica) => ({ replica, from: 0, until: undefined, cancelStart: () => {} }))
    this.#next = replicas.length
    this.#most = replicas.length
    this.#least = replicas.length
  }

  read(): Promise<number> {
    return Promise.resolve(this.#present().length)
  }

  scale({ to, leaving }: ScaleOrder): Promise<ScaleAnswer> {
    const present = this.#present()
    this.#count(Math.sign(to - present.length))
    // Those that were named go first, then those that have cost least.
    const order = [...present.filter(({ replica }) => leaving.includes(replica.id)), ...present.toReversed()]
    const going = new Set([...new Set(order)].slice(0, Math.max(0, present.length - to)))
    for (const paid of going) this.#end(paid)
    for (let i = present.length; i < to; i++) this.#begin()
    const count = this.#present().length
    this.#most = Math.max(this.#most, count)
    this.#least = Math.min(this.#least, count)
    return Promise.resolve({ kind: 'done' })
  }

  view(endAt: Instant, warmUntil: Instant): ScalingView {
    const priceOf = replicaPrices(this.#setup)
    let [gpuUs, usd] = [0, 0]
    for (const { replica, from, until = endAt } of this.#paid) {
      const paidUs = Math.max(0, Math.min(until, endAt) - Math.max(from, warmUntil))
      gpuUs += paidUs
      usd += (paidUs / US_PER_HOUR) * (priceOf(replica) ?? 0)
    }
    const [orders, turns, replicasMax, replicasMin] = [this.#orders, this.#turns, this.#most, this.#least]
    return { gpuHours: gpuUs / US_PER_HOUR, usd, orders, turns, replicasMax, replicasMin }
  }

  #count(direction: number): void {
    if (direction === 0) return
    this.#orders++
    if (this.#direction !== 0 && direction !== this.#direction) this.#turns++
    this.#direction = direction
  }

  #present(): Paid[] {
    return this.#paid.filter(({ until }) => until === undefined)
  }

  #begin(): void {
    const { clock, config, fleet, coldStartS } = this.#world
    const { id, model, releaseId, region, autoscale } = this.#setup.pool
    const replica: Replica = { id: `${id}-${this.#next++}`, poolId: id, model, releaseId, region }
    const profile = profileOf(this.#setup, replica) ?? 'h100-llama-8b'
    const engine = fleet.add(clock, replica, engineOptionsOf(config, profile))
    const usualUs = coldStartS === undefined ? (autoscale?.coldStartUs ?? 0) : secondsToUs(coldStartS)
    const tookUs = Math.round(usualUs * (1 + START_SPREAD * (2 * this.#rng.next() - 1)))
    const cancelStart = clock.at(clock.now() + tookUs, () => engine.recover())
    this.#paid.push({ replica, from: clock.now(), until: undefined, cancelStart })
    this.#change({ kind: 'add-replica', replica })
  }

  #end(paid: Paid): void {
    paid.cancelStart()
    paid.until = this.#world.clock.now()
    this.#change({ kind: 'remove-replica', replicaId: paid.replica.id })
  }

  #change(change: Parameters<Platform['changeFleet']>[0]): void {
    for (const platform of this.#world.platforms())
      platform.changeFleet(change, { by: 'autoscale', because: 'the simulated actuator carried out an order' })
  }
}

const US_PER_HOUR = 3_600_000_000
