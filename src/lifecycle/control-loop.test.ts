import { describe, expect, it } from 'vitest'
import { finished } from '../../test/support/scripted-backend.ts'
import { MODEL } from '../../test/support/start-platform.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import { makePoolPolicies } from '../assembly/assemble.ts'
import type { Clock } from '../base/clock.ts'
import { toPools } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { ControlLoop } from './control-loop.ts'
import { PROBE_US_MAX } from './fleet/probes.ts'
import type { ReplicaReport } from './ports.ts'

const TICK_US = 1_000_000
const POOL = `${MODEL}-local`
const WHY = { by: 'ada', because: 'a test' }
const READY: ReplicaReport = { isReady: true, because: 'fine' }
const silence = (): Promise<ReplicaReport> => new Promise(() => {})

const replicaOf = (world: VirtualWorld, id: string, poolId: string): Replica => ({
  ...world.platform.pools[0]!.replicas[0]!,
  id,
  poolId,
})

/** A second pool beside the world's own. */
function addPool(world: VirtualWorld, id: string): void {
  const [setup] = toPools(world.config)
  const pool = { ...setup!.pool, id, replicas: [replicaOf(world, `${id}-0`, id)] }
  const { tightestPromise } = world.platform.policies
  const known = makePoolPolicies(world.config, { ...setup!, pool }, tightestPromise, world.virtual.now())
  expect(world.platform.changeFleet({ kind: 'add-pool', known }, WHY).kind).toBe('changed')
}

/** When this pool was weighed, from the loop's first tick on, in microseconds. */
const ticksOf = (world: VirtualWorld, poolId: string, from = 0): number[] =>
  world.entries.flatMap((entry) =>
    entry.kind === 'pool-reported' && entry.poolId === poolId && entry.at >= from ? [entry.at] : [],
  )

const reportsOf = (world: VirtualWorld, replicaId: string) =>
  world.entries.flatMap((entry) =>
    entry.kind === 'replica-reported' && entry.replicaId === replicaId ? [[entry.at, entry.isReady] as const] : [],
  )

describe('a tick', () => {
  it('comes every interval to the microsecond, though a replica of another pool accepts and says nothing', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    addPool(world, 'other')
    backend.probe = () => Promise.resolve(READY)
    const loop = new ControlLoop(world.platform, TICK_US)
    await loop.start()
    const startedAt = world.virtual.now()
    let isOwnReady = true
    backend.probe = (replica) =>
      replica?.id === 'other-0' ? silence() : Promise.resolve({ ...READY, isReady: isOwnReady })
    const own = world.platform.pools[0]!.replicas[0]!.id
    // News of the other pool's replica is as fresh as ever: heard by the tick of the instant in which it is asked.
    world.after(3_500_000, () => {
      isOwnReady = false
    })
    await world.run(startedAt + 20 * TICK_US)
    loop.stop()
    const grid = Array.from({ length: 21 }, (_, i) => startedAt + i * TICK_US)
    expect(ticksOf(world, POOL, startedAt + 1)).toEqual(grid.slice(1))
    expect(ticksOf(world, 'other', startedAt + 1)).toEqual(grid.slice(1))
    expect(reportsOf(world, own).at(-1)).toEqual([grid[4], false])
    // Asked at the first tick, given up a limit later.
    expect(reportsOf(world, 'other-0')).toEqual([
      [startedAt, true],
      [startedAt + TICK_US + PROBE_US_MAX, false],
    ])
    expect(world.platform.policies.health.kindOf('other-0')).toBe('away')
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('is late once where the process was held up, and then on time again: nothing is made up for', async () => {
    const late = { us: 0 }
    const wrapClock = (clock: Clock): Clock => ({
      now: () => clock.now() + late.us,
      at: (instant, fn) => clock.at(instant - late.us, fn),
      sleep: (durationUs) => clock.sleep(durationUs),
    })
    const { world } = await VirtualWorld.scripted([finished(1)], { wrapClock })
    const loop = new ControlLoop(world.platform, TICK_US)
    await loop.start()
    const startedAt = world.clock.now()
    // Time jumps by 3.4 s between two ticks, as it does for a process that was stopped and continued.
    world.after(1_500_000, () => {
      late.us = 3_400_000
    })
    await world.run(world.virtual.now() + 5 * TICK_US)
    loop.stop()
    const sinceStart = ticksOf(world, POOL, startedAt + 1).map((at) => at - startedAt)
    expect(sinceStart).toEqual([1, 5.4, 6.4, 7.4, 8.4].map((s) => s * TICK_US))
  })
})

describe('the start', () => {
  it('waits until every replica was asked, and for a silent one no longer than its limit', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    addPool(world, 'other')
    backend.probe = async (replica) => {
      if (replica?.id === 'other-0') return silence()
      await world.clock.sleep(40_000)
      return READY
    }
    const loop = new ControlLoop(world.platform, TICK_US)
    const beganAt = world.virtual.now()
    let readyAt = 0
    void loop.start().then(() => {
      readyAt = world.virtual.now()
    })
    await world.run(beganAt + 8 * TICK_US)
    expect(readyAt).toBe(beganAt + PROBE_US_MAX)
    expect(reportsOf(world, world.platform.pools[0]!.replicas[0]!.id).at(-1)).toEqual([beganAt + 40_000, true])
    expect(reportsOf(world, 'other-0')).toEqual([[beganAt + PROBE_US_MAX, false]])
    loop.stop()
  })

  it('is over when it is stopped, and nothing ticks any more', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    backend.probe = silence
    const loop = new ControlLoop(world.platform, TICK_US)
    const before = world.entries.length
    const started = loop.start()
    loop.stop()
    await started
    const at = world.virtual.now()
    await world.run()
    expect([world.entries.length, world.virtual.now()]).toEqual([before, at])
  })
})

describe('a replica', () => {
  it('that stops answering is taken out of use, and back when it is there again', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    let isReady = true
    backend.probe = () => (isReady ? Promise.resolve({ isReady, because: 'fine' }) : Promise.reject(new Error('gone')))
    const loop = new ControlLoop(world.platform, TICK_US)
    await loop.start()
    const reports = () => world.entries.flatMap((entry) => (entry.kind === 'replica-reported' ? [entry.isReady] : []))
    expect(reports()).toEqual([true, true])
    isReady = false
    await world.run(world.virtual.now() + 3_500_000)
    expect(reports()).toEqual([true, true, false])
    const refused = world.serve()
    await world.run(world.virtual.now() + 500_000)
    expect(refused.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'no-replica' } })
    isReady = true
    await world.run(world.virtual.now() + 1_500_000)
    const served = world.serve()
    await world.run(world.virtual.now() + 100_000)
    expect(served.settled).toMatchObject({ outcome: 'completed' })
    loop.stop()
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('is never asked twice at once, however long it takes to answer', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    let open = 0
    let most = 0
    const slowly = async (): Promise<ReplicaReport> => {
      most = Math.max(most, ++open)
      await world.clock.sleep(5_000_000)
      open--
      return { isReady: true, because: 'at last' }
    }
    backend.probe = slowly
    const loop = new ControlLoop(world.platform, TICK_US)
    const started = loop.start()
    await world.run(world.virtual.now() + 60_000_000)
    await started
    expect(most).toBe(1)
    loop.stop()
    await world.run()
  })

  it('that was removed while it was asked is not heard; its successor of the same name is, and serves', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    const { platform } = world
    const loop = new ControlLoop(platform, TICK_US)
    await loop.start()
    const startedAt = world.virtual.now()
    const id = platform.pools[0]!.replicas[0]!.id
    const before = reportsOf(world, id).length
    // The old one answers "not ready" late; the new one, added between two ticks, is ready.
    backend.probe = async () => {
      await world.clock.sleep(700_000)
      return { isReady: false, because: 'I am leaving' }
    }
    world.after(1_500_000, () => {
      platform.changeFleet({ kind: 'remove-replica', replicaId: id }, WHY)
      platform.changeFleet({ kind: 'add-replica', replica: replicaOf(world, id, POOL) }, WHY)
      backend.probe = () => Promise.resolve(READY)
    })
    await world.run(startedAt + 2_500_000)
    expect(reportsOf(world, id).slice(before)).toEqual([[startedAt + 2 * TICK_US, true]])
    const served = world.serve()
    await world.run(startedAt + 2_600_000)
    expect(served.settled).toMatchObject({ outcome: 'completed', replicaId: id })
    loop.stop()
    await world.run()
    expect(world.unrest()).toEqual([])
  })
})
