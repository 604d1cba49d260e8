import { describe, expect, it } from 'vitest'
import { denied, finished } from '../../../test/support/scripted-backend.ts'
import { MODEL } from '../../../test/support/start-platform.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import { POOL_DENIAL_DEFAULTS } from '../../policy/routing/pool-denial.ts'

const { inRowMax, trialUs } = POOL_DENIAL_DEFAULTS
const DENIALS = Array.from({ length: inRowMax }, () => denied)
const BECAUSE = 'The engine answered 401: it does not accept our key.'

async function serveAll(world: VirtualWorld, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    world.serve()
    await world.run()
  }
}

describe('a pool whose engines all deny us', () => {
  it('gets nothing more: requests are refused at once, with the reason, and not told to come back', async () => {
    const { world, backend } = await VirtualWorld.scripted([...DENIALS, finished(1)])
    await serveAll(world, inRowMax)
    const { done, sink } = world.serve()
    await world.run()
    const refusal = { code: 'replica-denied', because: BECAUSE, blame: 'platform' }
    expect(await done).toMatchObject({ outcome: 'rejected', refusal })
    expect(sink.refusal?.retryAfterUs).toBeUndefined()
    expect(backend.plans).toHaveLength(inRowMax)
    expect(world.unrest()).toEqual([])
  })

  it('has one trial after a while, and takes everything again when it answers', async () => {
    const { world, backend } = await VirtualWorld.scripted([...DENIALS, finished(1), finished(1), finished(1)])
    await serveAll(world, inRowMax)
    await world.run(world.virtual.now() + trialUs)
    const trial = world.serve()
    const beside = world.serve()
    await world.run()
    expect(trial.settled).toMatchObject({ outcome: 'completed' })
    expect(beside.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'replica-denied' } })
    const after = [world.serve(), world.serve()]
    await world.run()
    expect(after.map(({ settled }) => settled?.outcome)).toEqual(['completed', 'completed'])
    expect(backend.plans).toHaveLength(inRowMax + 3)
    expect(world.unrest()).toEqual([])
  })

  it('is passed over where another pool answers, without an attempt', async () => {
    const pool = { model: MODEL, backend: { kind: 'simulated' }, limit: { kind: 'fixed', concurrencyMax: 1 } }
    const pools = [
      { ...pool, id: 'hosted', replicas: 1 },
      { ...pool, id: 'own', replicas: 1 },
    ]
    const { world, backend } = await VirtualWorld.scripted([finished(1)], { tree: { pools } })
    const [hosted] = world.platform.policies.poolsById.get('hosted')?.pool.replicas ?? []
    world.platform.policies.health.noteDenial(hosted?.id ?? '', BECAUSE)
    const now = world.virtual.now()
    for (const _ of DENIALS) world.platform.policies.poolsById.get('hosted')?.denial.observe(now, 'chat', BECAUSE)
    const served = world.serve()
    await world.run()
    expect(served.settled).toMatchObject({ outcome: 'completed', attempts: 1 })
    expect(backend.replicaIds).toEqual(['own-0'])
  })

  it('is asked as long as one of its replicas may answer', async () => {
    const { world, backend } = await VirtualWorld.scripted([...DENIALS, finished(1)], { replicas: 2 })
    const { health } = world.platform.policies
    await serveAll(world, inRowMax)
    const deniedIds = backend.replicaIds.filter((id) => health.deniedBecause(id) !== undefined)
    health.noteDenial(deniedIds[0] as string, undefined)
    const served = world.serve()
    await world.run()
    expect(served.settled).toMatchObject({ outcome: 'completed' })
  })
})
