import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finished, lost, ScriptedBackend, type Turnout } from '../../../test/support/scripted-backend.ts'
import { MODEL } from '../../../test/support/start-platform.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import { makePoolPolicies } from '../../assembly/assemble.ts'
import { toPools } from '../../config/to-domain.ts'
import type { FleetChanged } from '../../domain/entry.ts'
import type { Replica } from '../../domain/fleet.ts'
import { ControlLoop } from '../control-loop.ts'
import { NO_ROOM_YET } from '../sharing/room-exchange.ts'
import type { PoolPolicies } from './pool-policies.ts'

const WHY = { by: 'ada', because: 'a test' }
const POOL = `${MODEL}-local`

const hangs: Turnout = { deltas: 1, ending: 'hangs' }

function poolOf(world: VirtualWorld, id: string, count: number): PoolPolicies {
  const [setup] = toPools(world.config)
  const replicas = Array.from({ length: count }, (_, i) => replicaOf(world, `${id}-${i}`, id))
  const own = { ...setup!, pool: { ...setup!.pool, id, replicas } }
  return makePoolPolicies(world.config, own, world.platform.policies.tightestPromise, world.virtual.now())
}

function replicaOf(world: VirtualWorld, id: string, poolId: string = POOL): Replica {
  return { ...world.platform.pools[0]!.replicas[0]!, id, poolId }
}

const told = (world: VirtualWorld): string[] =>
  world.entries
    .filter((entry): entry is FleetChanged => entry.kind === 'fleet-changed')
    .map(({ what, name }) => `${what} ${name}`)

const replicaIds = (world: VirtualWorld): string[] =>
  world.platform.policies.dispatcher.view().pools.flatMap((pool) => pool.replicas.map(({ id }) => id))

describe('a gateway of another region', () => {
  it('has room here before any exchange, though engines have none: nobody gives it out', async () => {
    const world = await VirtualWorld.of((clock) => new ScriptedBackend(clock, [finished(3)]), {
      capacity: NO_ROOM_YET,
      tree: { regions: { local: 'local', peers: [{ region: 'us', urls: ['http://us-1/v1'], apiKey: 'k' }] } },
    })
    const { dispatcher } = world.platform.policies
    expect(dispatcher.poolFacts(POOL)).toMatchObject({ readyReplicaCount: 1, openReplicaCount: 0 })
    expect(dispatcher.poolFacts(`us:${MODEL}`)).toMatchObject({ readyReplicaCount: 1, openReplicaCount: 1 })
  })
})

describe('a replica that joins', () => {
  it('takes nothing until it was probed, and then what waits, at once', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)])
    const all = [world.serve(), world.serve()]
    expect(world.platform.changeFleet({ kind: 'add-replica', replica: replicaOf(world, 'new') }, WHY).kind).toBe(
      'changed',
    )
    expect(world.platform.turnstile.view()).toMatchObject({ inFlight: 1, waiting: 1 })
    await world.probe()
    expect(world.platform.turnstile.view()).toMatchObject({ inFlight: 2, waiting: 0 })
    expect(world.platform.policies.health.kindOf('new')).toBe('warming')
    await world.run()
    expect(all.map((one) => one.settled?.outcome)).toEqual(['completed', 'completed'])
    expect(world.unrest()).toEqual([])
    expect(told(world)).toEqual(['replica-added new'])
    expect(world.entries.find((entry) => entry.kind === 'fleet-changed')).toMatchObject(WHY)
  })

  it('has a name of its own and a pool that is there', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const add = (replica: Replica) => world.platform.changeFleet({ kind: 'add-replica', replica }, WHY)
    expect(add(replicaOf(world, replicaIds(world)[0]!))).toMatchObject({ kind: 'refused', code: 'name-taken' })
    expect(add(replicaOf(world, 'new', 'nowhere'))).toMatchObject({ kind: 'refused', code: 'no-such-pool' })
    expect(told(world)).toEqual([])
  })
})

describe('a replica that leaves', () => {
  it('finishes what it runs, gets nothing new, and is then forgotten everywhere', async () => {
    const { world } = await VirtualWorld.scripted([{ ...finished(5), everyUs: 100_000 }], { replicas: 2 })
    const [first, second] = replicaIds(world) as [string, string]
    const running = [world.serve(), world.serve()]
    const waiting = world.serve()
    world.platform.changeFleet({ kind: 'remove-replica', replicaId: second }, WHY)
    expect(replicaIds(world)).toEqual([first, second])
    await world.run()
    expect([...running, waiting].map((one) => one.settled?.outcome)).toEqual(['completed', 'completed', 'completed'])
    expect(waiting.settled?.replicaId).toBe(first)
    expect(replicaIds(world)).toEqual([first])
    expect(world.platform.pools[0]?.replicas.map(({ id }) => id)).toEqual([first])
    expect(world.platform.policies.health.kindOf(second)).toBeUndefined()
    expect(told(world)).toEqual([`replica-draining ${second}`, `replica-removed ${second}`])
    expect(world.unrest()).toEqual([])
  })

  it('goes at once when it runs nothing', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)], { replicas: 2 })
    const [first, second] = replicaIds(world) as [string, string]
    world.platform.changeFleet({ kind: 'remove-replica', replicaId: second }, WHY)
    expect(replicaIds(world)).toEqual([first])
  })

  it('stays when it is wanted again before it has gone, and starts slowly', async () => {
    const { world } = await VirtualWorld.scripted([{ ...finished(5), everyUs: 100_000 }])
    const [id] = replicaIds(world) as [string]
    const running = world.serve()
    world.platform.changeFleet({ kind: 'remove-replica', replicaId: id }, WHY)
    world.platform.changeFleet({ kind: 'add-replica', replica: replicaOf(world, id) }, WHY)
    await world.run()
    expect(running.settled?.outcome).toBe('completed')
    expect(replicaIds(world)).toEqual([id])
    expect(world.platform.policies.health.kindOf(id)).toBe('warming')
    expect(told(world)).toEqual([`replica-draining ${id}`, `replica-kept ${id}`])
  })

  it('drained and not removed, it stays known and is used again when told', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(1)])
    const [id] = replicaIds(world) as [string]
    world.platform.changeFleet({ kind: 'drain-replica', replicaId: id }, WHY)
    const refused = world.serve()
    await world.probe()
    expect(refused.settled?.refusal?.code).toBe('no-replica')
    world.platform.changeFleet({ kind: 'undrain-replica', replicaId: id }, WHY)
    const served = world.serve()
    await world.run()
    expect(served.settled?.outcome).toBe('completed')
    expect(backend.openCount).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('is not asked about when nobody knows it', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    for (const kind of ['drain-replica', 'undrain-replica', 'remove-replica'] as const)
      expect(world.platform.changeFleet({ kind, replicaId: 'nobody' }, WHY)).toMatchObject({ code: 'no-such-replica' })
  })
})

describe('a pool that is removed', () => {
  it('serves who was promised a turn there, sends newcomers elsewhere, and goes', async () => {
    const { world } = await VirtualWorld.scripted([{ ...finished(5), everyUs: 100_000 }])
    const promised = [world.serve(), world.serve()]
    world.platform.changeFleet({ kind: 'add-pool', known: poolOf(world, 'other', 1) }, WHY)
    await world.probe()
    world.platform.changeFleet({ kind: 'remove-pool', poolId: POOL }, WHY)
    const late = world.serve()
    await world.run()
    expect(promised.map((one) => one.settled?.poolId)).toEqual([POOL, POOL])
    expect(late.settled?.poolId).toBe('other')
    expect([...promised, late].map((one) => one.settled?.outcome)).toEqual(['completed', 'completed', 'completed'])
    expect(world.platform.pools.map(({ id }) => id)).toEqual(['other'])
    expect(world.platform.policies.dispatcher.view().pools.map(({ id }) => id)).toEqual(['other'])
    expect(world.unrest()).toEqual([])
  })

  it('keeps the second try of a ticket whose attempt was lost there', async () => {
    const { world } = await VirtualWorld.scripted([lost(0), finished(1)], { replicas: 2 })
    const served = world.serve()
    world.platform.changeFleet({ kind: 'remove-pool', poolId: POOL }, WHY)
    await world.run()
    expect(served.settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(world.platform.pools).toEqual([])
    expect(world.unrest()).toEqual([])
  })

  it('leaves a model without a pool: refused, and said why; then the model can go', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    expect(world.platform.changeFleet({ kind: 'remove-model', name: MODEL }, WHY)).toMatchObject({ code: 'still-used' })
    world.platform.changeFleet({ kind: 'remove-pool', poolId: POOL }, WHY)
    const served = world.serve()
    await world.run()
    expect(served.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'no-replica' } })
    expect(world.platform.changeFleet({ kind: 'remove-model', name: MODEL }, WHY).kind).toBe('changed')
    expect(world.platform.policies.models.size).toBe(0)
    expect(world.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
  })

  it('of another region is found by its model, and is forgotten with it', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const { fleet } = world.platform.policies
    const own = poolOf(world, 'us:sim', 1)
    const releaseId = 'sim@in-us'
    const known = { ...own, pool: { ...own.pool, releaseId, isPeer: true } }
    expect(world.platform.changeFleet({ kind: 'add-pool', known }, WHY)).toEqual({ kind: 'changed' })
    expect(fleet.peersByModel.get(MODEL)?.map(({ pool }) => pool.id)).toEqual(['us:sim'])
    world.platform.changeFleet({ kind: 'remove-pool', poolId: 'us:sim' }, WHY)
    expect(fleet.peersByModel.size).toBe(0)
    expect(fleet.poolsById.has('us:sim')).toBe(false)
    const stranger = { ...known, pool: { ...known.pool, model: 'nobody' } }
    expect(world.platform.changeFleet({ kind: 'add-pool', known: stranger }, WHY)).toMatchObject({
      code: 'no-such-model',
    })
  })

  it('is kept for other tenants from the next request on', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const change = { kind: 'dedicate-pool', poolId: POOL, dedicatedTo: ['globex'] } as const
    expect(world.platform.changeFleet(change, WHY)).toEqual({ kind: 'changed' })
    const refused = world.serve()
    await world.run()
    expect(refused.settled).toMatchObject({ outcome: 'rejected' })
    world.platform.changeFleet({ ...change, dedicatedTo: undefined }, WHY)
    const served = world.serve()
    await world.run()
    expect(served.settled).toMatchObject({ outcome: 'completed' })
    expect(world.platform.changeFleet({ ...change, poolId: 'nobody' }, WHY)).toMatchObject({ code: 'no-such-pool' })
  })

  it('with an answer that hangs, closes when that is called off', async () => {
    const { world } = await VirtualWorld.scripted([hangs])
    const served = world.serve()
    world.platform.changeFleet({ kind: 'remove-pool', poolId: POOL }, WHY)
    await world.run()
    expect(world.platform.pools).toHaveLength(1)
    served.cancellation.cancel('client-gone')
    await world.run()
    expect(world.platform.pools).toEqual([])
    expect(world.unrest()).toEqual([])
  })
})

describe('a fleet under load', () => {
  type Step = { readonly afterMs: number; readonly do: 'ask' | 'add' | 'remove' | 'add-pool' | 'remove-pool' }
  const step = fc.record<Step>({
    afterMs: fc.integer({ min: 0, max: 400 }),
    do: fc.constantFrom('ask', 'ask', 'ask', 'ask', 'add', 'remove', 'add-pool', 'remove-pool'),
  })

  /** Everybody is served: one pool stays with one replica, and no other pool is emptied replica by replica. */
  it('changes at any moment, and nobody is lost, nothing is held twice, nothing is left behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 80 }), fc.nat(1_000), async (steps, choice) => {
        const { world } = await VirtualWorld.scripted([{ ...finished(4), everyUs: 50_000 }, lost(0), finished(2)], {
          replicas: 2,
          concurrencyMax: 2,
          queueMax: 1_000,
          waitMsMax: 600_000,
        })
        const { platform } = world
        const { dispatcher, health } = platform.policies
        const loop = new ControlLoop(platform, 250_000)
        await loop.start()
        let count = 0
        const asked: Array<ReturnType<VirtualWorld['serve']>> = []
        const acts: Record<Step['do'], () => void> = {
          ask: () => void asked.push(world.serve()),
          add() {
            const { id } = platform.pools[choice % platform.pools.length]!
            platform.changeFleet({ kind: 'add-replica', replica: replicaOf(world, `r${count++}`, id) }, WHY)
          },
          remove() {
            const pool = platform.pools[choice % platform.pools.length]!
            const staying = pool.replicas.filter(({ id }) => ['warming', 'steady'].includes(health.kindOf(id) ?? ''))
            if (staying.length < 2) return
            platform.changeFleet({ kind: 'remove-replica', replicaId: staying[choice % staying.length]!.id }, WHY)
          },
          'add-pool': () =>
            void platform.changeFleet({ kind: 'add-pool', known: poolOf(world, `p${count++}`, 2) }, WHY),
          'remove-pool'() {
            const others = platform.pools.filter(({ id }) => id !== POOL)
            const pool = others[choice % Math.max(1, others.length)]
            if (pool !== undefined) platform.changeFleet({ kind: 'remove-pool', poolId: pool.id }, WHY)
          },
        }
        let atUs = 0
        for (const { afterMs, do: what } of steps) {
          atUs += afterMs * 1_000
          world.after(atUs, () => {
            acts[what]()
            dispatcher.assertInvariants()
            health.assertInvariants()
          })
        }
        // The loop never ends by itself: as long as everything needs, several times over.
        world.after(atUs + 120_000_000, () => loop.stop())
        await world.run()
        expect(world.unrest()).toEqual([])
        expect(world.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
        // A lost attempt is tried once more; only one that was lost twice may fail.
        for (const { settled } of asked)
          expect(settled?.outcome === 'completed' || settled?.attempts === 2, JSON.stringify(settled)).toBe(true)
        expect(platform.fleetChanges.isAnythingLeaving).toBe(false)
        const there = platform.pools.flatMap((pool) => pool.replicas.map(({ id }) => id)).sort()
        expect(replicaIds(world).sort()).toEqual(there)
        dispatcher.assertInvariants()
      }),
      { numRuns: 30 },
    )
  })

  it('after ten thousand replicas have come and gone keeps nothing of them', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const { platform } = world
    const forgotten: string[] = []
    Object.assign(platform.world.backends, { forget: (replica: Replica) => void forgotten.push(replica.id) })
    for (let i = 0; i < 10_000; i++) {
      const replica = replicaOf(world, `r${i}`)
      platform.changeFleet({ kind: 'add-replica', replica }, WHY)
      if (i % 1_000 === 0) {
        await world.probe()
        world.serve({ prefixHashes: [i, i + 1], segments: [{ role: 'user', tokens: 64 }] })
        world.serve({ prefixHashes: [i, i + 1], segments: [{ role: 'user', tokens: 64 }] })
        await world.run()
      }
      platform.changeFleet({ kind: 'remove-replica', replicaId: replica.id }, WHY)
    }
    expect(forgotten).toHaveLength(10_000)
    expect(replicaIds(world)).toHaveLength(1)
    expect(platform.policies.health.kindOf('r9999')).toBeUndefined()
    expect(world.unrest()).toEqual([])
  })
})
