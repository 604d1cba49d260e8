import { describe, expect, it } from 'vitest'
import { finished, full, lost, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld, type WorldOptions } from '../../test/support/virtual-world.ts'
import type { Clock } from '../base/clock.ts'
import type { Retriever } from './retrieval-ports.ts'

/** `waitMsMax: 0`: a request starts at once, or is refused. */
const worldOf = async (turnouts: readonly Turnout[], options: WorldOptions = {}): Promise<VirtualWorld> =>
  (await VirtualWorld.scripted(turnouts, { waitMsMax: 0, ...options })).world

describe('where nothing may wait', () => {
  it('starts what has room, refuses the rest at once, and starts again when there is room', async () => {
    const world = await worldOf([finished(3)])
    const first = world.serve()
    const second = world.serve()
    await world.run(world.clock.now())
    expect(world.kinds(first.request.id)).toContain('granted')
    expect(second.settled).toMatchObject({ outcome: 'rejected', attempts: 0, admittedAt: undefined })
    expect(second.sink.refusal).toMatchObject({ code: 'queue-full', blame: 'platform' })
    expect(second.sink.refusal?.retryAfterUs).toBeGreaterThan(0)
    await world.run()
    const third = world.serve()
    await world.run()
    expect([first, third].map(({ settled }) => settled?.outcome)).toEqual(['completed', 'completed'])
    expect(world.unrest()).toEqual([])
  })

  it('holds for one tenant alone, if only that one says so', async () => {
    const world = await worldOf([finished(3)], { waitMsMax: 10_000 })
    const hasty = { tenant: { ...world.serve().request.tenant, queueUsMax: 0 } }
    const patient = world.serve()
    const refused = world.serve(hasty)
    await world.run()
    expect(patient.settled?.outcome).toBe('completed')
    expect(refused.sink.refusal?.code).toBe('queue-full')
    expect(world.unrest()).toEqual([])
  })

  it('tries a lost attempt again where another replica has room, and waits for none', async () => {
    const again = await worldOf([lost(0), finished(3)], { replicas: 2 })
    const served = again.serve()
    await again.run()
    expect(served.settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    const none = await worldOf([full(1_000_000)])
    const refused = none.serve()
    await none.run()
    expect(refused.settled).toMatchObject({ outcome: 'failed', attempts: 1, refusal: { code: 'replica-refused' } })
    expect([...again.unrest(), ...none.unrest()]).toEqual([])
  })

  it('lets passages be found first, until the end of their time', async () => {
    const retriever = (clock: Clock): Retriever => ({
      lookUp: () => ({ kind: 'unknown' }),
      async retrieve({ budgetUs }) {
        await clock.sleep(budgetUs)
        return { outcome: 'skipped', because: 'late', passages: [] }
      },
    })
    const answerOf20s = { ...finished(2), everyUs: 10_000_000 }
    const world = await worldOf([answerOf20s], { retriever })
    const asked = { retrieval: { corpus: 'handbook', passagesMax: 3, query: 'what?' } }
    const [first, second] = [world.serve(asked), world.serve(asked)]
    await world.run()
    expect(first.settled?.outcome).toBe('completed')
    // There is no room when its passages are there, so it expires; long before the first one ends.
    expect(second.settled).toMatchObject({ outcome: 'expired', refusal: { code: 'waited-too-long' } })
    expect(second.settled!.at - second.request.arrivedAt).toBeLessThan(1_000_000)
    expect(world.unrest()).toEqual([])
  })
})
