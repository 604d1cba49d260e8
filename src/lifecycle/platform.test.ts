import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'

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
