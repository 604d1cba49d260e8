import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import { ControlLoop } from './control-loop.ts'
import type { ReplicaReport } from './ports.ts'

const hangs: Turnout = { deltas: 2, ending: 'hangs' }

describe('draining', () => {
  it('is over at once when nothing is alive', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    await world.platform.drain()
    expect(world.platform.isDraining).toBe(true)
  })

  it('lets what is there finish, what waits too, and takes nothing new', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)])
    const all = [world.serve(), world.serve()]
    let drainedAt = 0
    void world.platform.drain().then(() => {
      drainedAt = world.virtual.now()
    })
    const late = world.serve()
    await world.run()
    expect(all.map((one) => one.settled?.outcome)).toEqual(['completed', 'completed'])
    expect(late.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'shutting-down' } })
    expect(drainedAt).toBe(all[1]!.settled!.at)
    expect(world.unrest()).toEqual([])
  })

  it('ends the rest with a reason when the grace is over: waiting, before the first token, and in the middle', async () => {
    const { world } = await VirtualWorld.scripted([hangs, { deltas: 0, ending: 'hangs' }], { replicas: 2 })
    const [middle, silent, waiting] = [world.serve(), world.serve(), world.serve()]
    const startedAt = world.virtual.now()
    const drained = world.platform.drain()
    world.after(50_000, () => world.platform.cancelAll('shutting-down'))
    await world.run()
    await drained
    for (const one of [middle, silent, waiting]) {
      expect(one!.settled).toMatchObject({
        outcome: 'failed',
        because: 'shutting-down',
        refusal: { code: 'shutting-down', blame: 'platform' },
      })
      expect(one!.settled!.at - startedAt).toBe(50_000)
    }
    expect(middle!.sink.calls).toEqual(['start', 'write', 'write', 'fail'])
    expect(middle!.settled!.usage.outputTokens).toBe(2)
    expect(silent!.sink.calls).toEqual(['fail'])
    expect(world.unrest()).toEqual([])
  })
})

describe('the control loop', () => {
  it('takes a replica that stops answering out of use, and back when it is there again', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    let isReady = true
    backend.probe = () => (isReady ? Promise.resolve({ isReady, because: 'fine' }) : Promise.reject(new Error('gone')))
    const loop = new ControlLoop(world.platform, 1_000_000)
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

  it('never looks at a replica twice at once, however long it takes to answer', async () => {
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
    const loop = new ControlLoop(world.platform, 1_000_000)
    const started = loop.start()
    await world.run(world.virtual.now() + 60_000_000)
    await started
    expect(most).toBe(1)
    loop.stop()
    await world.run()
  })
})
