import { describe, expect, it } from 'vitest'
import { callAgain, type TryAnswer } from '../../actuators/call-again.ts'
import { secondsToUs } from '../../base/clock.ts'
import { VirtualClock } from '../../base/virtual-clock.ts'
import { StoreLeadership } from '../../control/store-leadership.ts'
import { NO_AUTOSCALE } from '../../domain/autoscale.ts'
import type { Entry } from '../../domain/entry.ts'
import type { LeaderStore } from '../../domain/leader.ts'
import { PoolScaler, type ScalerView } from '../../policy/autoscale/pool-scaler.ts'
import { MemoryLeaderStore } from '../../store/memory-leader-store.ts'
import type { Actuator, ScaleAnswer, ScaleOrder } from '../autoscale-ports.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import { type OrdersParts, ScaleOrders } from './scale-orders.ts'

/**
 * Two gateways on one leader store, and a cloud that carries orders out: the leader is lost in the middle of a change. The
 * leadership, the scaler's book and the orders are the real ones; demand is what the test says.
 */
const COLD_START_S = 60
const TERMS = { ...NO_AUTOSCALE, writer: 'spillway', max: 8, coldStartUs: secondsToUs(COLD_START_S) } as const

interface Carried {
  readonly atS: number
  readonly by: string
  readonly fence: number
  readonly to: number
}

/** Replicas by number: an order is carried out when its call ends, and what it adds is ready a cold start later. */
class Cloud {
  readonly #clock: VirtualClock
  readonly #isReadable: boolean
  readonly carried: Carried[] = []
  readonly #readyAt: number[] = [0]
  startedCount = 0
  /** How long a try takes; and tries that the cloud fails, of which gateway. */
  tryS = 1
  unluckyOf: string | undefined
  /** Calls of a gateway that was killed never arrive. */
  readonly dead = new Set<string>()

  constructor(clock: VirtualClock, isReadable: boolean) {
    this.#clock = clock
    this.#isReadable = isReadable
  }

  get count(): number {
    return this.#readyAt.length
  }

  get readyCount(): number {
    return this.#readyAt.filter((at) => at <= this.#clock.now()).length
  }

  actuatorOf(gateway: string): Actuator {
    const scale: Actuator['scale'] = (order, isOver) =>
      callAgain(this.#clock, () => this.#try(gateway, order), isOver) as Promise<ScaleAnswer>
    return this.#isReadable ? { scale, read: () => Promise.resolve(this.count) } : { scale }
  }

  async #try(by: string, { to, fence }: ScaleOrder): Promise<TryAnswer> {
    const isUnlucky = this.unluckyOf === by
    await this.#clock.sleep(secondsToUs(this.tryS))
    if (this.dead.has(by)) return new Promise(() => {})
    if (isUnlucky) return { kind: 'unlucky', because: 'the cloud answered 503' }
    this.carried.push({ atS: this.#clock.now() / secondsToUs(1), by, fence: fence?.number ?? 0, to })
    this.#readyAt.length = Math.min(to, this.count)
    while (this.count < to) {
      this.#readyAt.push(this.#clock.now() + secondsToUs(COLD_START_S))
      this.startedCount++
    }
    return { kind: 'done' }
  }
}

/** The store as one gateway sees it: it can be cut off. */
class Line implements LeaderStore {
  isCut = false
  readonly #store: LeaderStore
  constructor(store: LeaderStore) {
    this.#store = store
  }
  acquire(ask: Parameters<LeaderStore['acquire']>[0]) {
    return this.isCut ? Promise.reject(new Error('cut')) : this.#store.acquire(ask)
  }
  renew(ask: Parameters<LeaderStore['renew']>[0]) {
    return this.isCut ? Promise.reject(new Error('cut')) : this.#store.renew(ask)
  }
  release(fence: Parameters<LeaderStore['release']>[0]) {
    return this.isCut ? Promise.reject(new Error('cut')) : this.#store.release(fence)
  }
}

class World {
  readonly clock = new VirtualClock()
  readonly cloud: Cloud
  readonly store = new MemoryLeaderStore(this.clock)
  readonly entries: Entry[] = []
  readonly leaders = new Set<string>()
  /** Most gateways that led at one instant. */
  leadersMax = 0
  wanted = 1

  constructor(isReadable: boolean) {
    this.cloud = new Cloud(this.clock, isReadable)
  }

  gateway(id: string) {
    const { clock, cloud, entries } = this
    const line = new Line(this.store)
    const journal = { record: (entry: Entry) => void entries.push(entry) }
    const leadership = new StoreLeadership({ clock, journal, store: line, name: 'duties', gatewayId: id })
    const wanted = (): number => this.wanted
    class ToldScaler extends PoolScaler {
      override get view(): ScalerView {
        return { ...super.view, desired: wanted(), readyCount: cloud.readyCount }
      }
    }
    const scaler = new ToldScaler(TERMS, 0)
    const known = { pool: { id: 'chat', replicas: [] }, scaler } as unknown as PoolPolicies
    const platform = { world: { clock, journal, leadership } } as unknown as OrdersParts['platform']
    const actuator = cloud.actuatorOf(id)
    const orders = new ScaleOrders({ platform, known, actuator: () => actuator, drains: undefined })
    let isAlive = true
    const tick = (): void => {
      if (!isAlive) return
      if (leadership.role().kind === 'leads') this.leaders.add(id)
      else this.leaders.delete(id)
      this.leadersMax = Math.max(this.leadersMax, this.leaders.size)
      orders.step(clock.now())
      clock.at(clock.now() + secondsToUs(1), tick)
    }
    leadership.start()
    tick()
    return {
      line,
      leads: () => isAlive && leadership.role().kind === 'leads',
      /** Gone without a word: its calls break off, its lease runs out. */
      kill: () => {
        isAlive = false
        line.isCut = true
        this.leaders.delete(id)
        cloud.dead.add(id)
      },
    }
  }

  async runFor(seconds: number): Promise<void> {
    await this.clock.run(this.clock.now() + secondsToUs(seconds))
  }

  /** A fence is never followed by an earlier one: no order of a leader that was followed is carried out. */
  get isFenceKept(): boolean {
    return this.cloud.carried.every(({ fence }, i) => i === 0 || fence >= (this.cloud.carried[i - 1]?.fence ?? 0))
  }
}

/** Gateway `a` leads one replica, `b` follows; then four are wanted. */
async function scaleUp(isReadable: boolean) {
  const world = new World(isReadable)
  const a = world.gateway('a')
  await world.runFor(5)
  const b = world.gateway('b')
  await world.runFor(10)
  expect([a.leads(), b.leads(), world.cloud.count]).toEqual([true, false, 1])
  world.wanted = 4
  return { world, a, b }
}

const CLOUDS = [
  ['a cloud that says how many it was asked for', true],
  ['a cloud that cannot be asked', false],
] as const

describe.each(CLOUDS)('a leader that is lost in the middle of a change, at %s', (_, isReadable) => {
  it('while its call is under way: the next one orders, and once', async () => {
    const { world, a, b } = await scaleUp(isReadable)
    await world.runFor(1.5)
    a.kill()
    await world.runFor(300)
    expect(b.leads()).toBe(true)
    expect([world.cloud.count, world.cloud.readyCount, world.cloud.startedCount]).toEqual([4, 4, 3])
    expect(world.leadersMax).toBe(1)
    expect(world.isFenceKept).toBe(true)
  })

  it('while replicas start: as many come as are wanted, and none twice', async () => {
    const { world, a } = await scaleUp(isReadable)
    await world.runFor(10)
    expect([world.cloud.count, world.cloud.readyCount]).toEqual([4, 1])
    a.kill()
    await world.runFor(300)
    expect([world.cloud.count, world.cloud.readyCount, world.cloud.startedCount]).toEqual([4, 4, 3])
    expect(world.cloud.carried.filter(({ to }) => to !== 4 && to !== 1)).toEqual([])
    expect(world.leadersMax).toBe(1)
  })

  it('while replicas start that are not wanted any more: they do not stay', async () => {
    const { world, a } = await scaleUp(isReadable)
    await world.runFor(10)
    a.kill()
    world.wanted = 1
    await world.runFor(300)
    expect([world.cloud.count, world.cloud.startedCount]).toEqual([1, 3])
  })

  it('and goes on, cut off from the store: it orders nothing after it was followed', async () => {
    const { world, a, b } = await scaleUp(isReadable)
    // Its tries are unlucky, each for as long as a term lasts; the cloud is well again when the other one leads.
    world.cloud.unluckyOf = 'a'
    world.cloud.tryS = 5
    await world.runFor(1)
    a.line.isCut = true
    world.wanted = 2
    await world.runFor(5)
    world.cloud.unluckyOf = undefined
    await world.runFor(300)
    expect([a.leads(), b.leads()]).toEqual([false, true])
    expect([world.cloud.count, world.cloud.readyCount, world.cloud.startedCount]).toEqual([2, 2, 1])
    expect(world.cloud.carried.filter(({ by, to }) => by === 'a' && to === 4)).toEqual([])
    expect(world.leadersMax).toBe(1)
    expect(world.isFenceKept).toBe(true)
  })

  it('and leads again later: it begins with what is there, not with what it had ordered', async () => {
    const { world, a, b } = await scaleUp(isReadable)
    await world.runFor(10)
    a.line.isCut = true
    await world.runFor(20)
    world.wanted = 2
    await world.runFor(20)
    expect([b.leads(), world.cloud.count]).toEqual([true, 2])
    a.line.isCut = false
    b.kill()
    world.wanted = 3
    await world.runFor(300)
    expect([a.leads(), world.cloud.count, world.cloud.readyCount]).toEqual([true, 3, 3])
    expect(world.leadersMax).toBe(1)
    expect(world.isFenceKept).toBe(true)
  })
})
