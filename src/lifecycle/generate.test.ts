import { describe, expect, it } from 'vitest'
import { finished } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'

const SECOND = 1_000_000

describe('a request that is cut off at its deadline', () => {
  it('ends then, if its engine still works', async () => {
    const { world } = await VirtualWorld.scripted([{ deltas: 0, ending: 'hangs' }])
    const deadlineAt = world.clock.now() + 30 * SECOND
    const served = world.serve({ deadlineAt, isCutOff: true, isStreamed: false })
    await world.run()
    expect(served.settled).toMatchObject({ at: deadlineAt, refusal: { code: 'deadline-passed' } })
    expect(world.unrest()).toEqual([])
  })

  it('leaves no timer behind when it has ended before', async () => {
    const { world } = await VirtualWorld.scripted([finished(4)])
    const before = world.virtual.pendingCount
    const deadlineAt = world.clock.now() + 30 * SECOND
    const served = world.serve({ deadlineAt, isCutOff: true })
    await world.run(world.clock.now() + SECOND)
    expect(served.settled?.outcome).toBe('completed')
    expect(world.virtual.pendingCount).toBe(before)
  })
})
