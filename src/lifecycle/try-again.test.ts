import { describe, expect, it } from 'vitest'
import { ACME } from '../../test/support/requests.ts'
import { denied, finished, full, lost } from '../../test/support/scripted-backend.ts'
import { MODEL } from '../../test/support/start-platform.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Granted } from '../domain/entry.ts'
import type { Request, Segment } from '../domain/request.ts'

/** A conversation of 22 messages and 4,400 tokens, with room for a long answer: every rung takes something from it. */
const LONG: Partial<Request> = {
  segments: Array.from({ length: 22 }, (_, i): Segment => ({ role: i % 2 === 0 ? 'user' : 'assistant', tokens: 200 })),
  outputTokensMax: 2_000,
}

const grantsOf = ({ entries }: VirtualWorld): Granted[] =>
  entries.filter((entry): entry is Granted => entry.kind === 'granted')

describe('a lost attempt', () => {
  it('is tried again on the same terms: one engine error must not halve a conversation', async () => {
    const { world, backend } = await VirtualWorld.scripted([lost(0), finished(3)])
    const { done, sink } = world.serve(LONG)
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 2, rung: 'full' })
    expect(backend.plans.map(({ keptSegments, outputTokensMax }) => [keptSegments.length, outputTokensMax])).toEqual([
      [22, 2_000],
      [22, 2_000],
    ])
    expect(sink.head).toMatchObject({ rung: 'full' })
    expect(grantsOf(world)[1]).toMatchObject({ again: 'the attempt before was lost', rung: 'full', region: 'local' })
    expect(grantsOf(world)[1]?.trim).toBeUndefined()
    expect(world.unrest()).toEqual([])
  })

  it('steps down when the time left is too short for the same terms', async () => {
    const slowLoss = { deltas: 0, everyUs: 20_000_000, ending: { kind: 'lost', because: 'gone' } as const }
    const { world, backend } = await VirtualWorld.scripted([slowLoss, finished(3)], { waitMsMax: 60_000 })
    const { done } = world.serve({ ...LONG, deadlineAt: world.virtual.now() + 20_100_000 })
    await world.run()
    expect(await done).toMatchObject({ attempts: 2, rung: 'trim-context' })
    expect(backend.plans[1]?.keptSegments.length).toBeLessThan(22)
    expect(grantsOf(world)[1]?.trim).toMatchObject({
      messages: { kept: 10, asked: 22 },
      promptTokens: { kept: 2_000, asked: 4_400 },
    })
    expect(world.unrest()).toEqual([])
  })
})

describe('an engine without room', () => {
  it('is not asked again before its time: the ticket waits in its lane, and then asks for less', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(2_000_000), finished(3)])
    const { done, request } = world.serve(LONG)
    expect(world.platform.turnstile.view().inFlight).toBe(1)
    await world.run(world.virtual.now() + 100_000)
    expect(world.platform.turnstile.view()).toMatchObject({ waiting: 1, inFlight: 0 })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 2, rung: 'trim-context' })
    const [first = 0, second = 0] = backend.calledAt
    expect(second - first).toBeGreaterThanOrEqual(2_000_000)
    expect(second - first).toBeLessThanOrEqual(2_000_000 * 1.2 + 2_000)
    expect(grantsOf(world)[1]?.again).toMatch(/^no replica had room, and waited 2\d{3} ms for it$/)
    expect(world.kinds(request.id).filter((kind) => kind === 'granted')).toHaveLength(2)
    expect(world.unrest()).toEqual([])
  })

  it('lets those go on meanwhile that have not been refused', async () => {
    const { world } = await VirtualWorld.scripted([full(2_000_000), finished(3)])
    const refused = world.serve()
    const other = world.serve()
    await world.run(world.virtual.now() + 1_000_000)
    expect(other.settled).toMatchObject({ outcome: 'completed' })
    expect(refused.settled).toBeUndefined()
    await world.run()
    expect(refused.settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(world.unrest()).toEqual([])
  })

  it('is passed over at once where another replica may have room', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(2_000_000), finished(3)], { replicas: 2 })
    const { done } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(backend.calledAt[1]! - backend.calledAt[0]!).toBe(1_000)
    expect(new Set(backend.replicaIds).size).toBe(2)
  })

  it('is waited for longer each time, three times at most, and the client is told the engine’s own time', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(500_000)], { waitMsMax: 60_000 })
    const { done } = world.serve()
    await world.run()
    expect(await done).toMatchObject({
      outcome: 'failed',
      attempts: 4,
      refusal: { code: 'replica-refused', retryAfterUs: 500_000 },
    })
    const gaps = backend.calledAt.slice(1).map((at, i) => at - backend.calledAt[i]!)
    for (const [i, us] of gaps.entries()) {
      expect(us).toBeGreaterThanOrEqual(500_000 * 2 ** i)
      expect(us).toBeLessThanOrEqual(500_000 * 2 ** i * 1.2 + 2_000)
    }
    expect(world.unrest()).toEqual([])
  })

  it('is not waited for beyond the ticket’s own time: its client is told at once', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(30_000_000), finished(3)], { waitMsMax: 10_000 })
    const { done } = world.serve()
    await world.run()
    const settled = await done
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 1, refusal: { retryAfterUs: 30_000_000 } })
    expect(settled.at - settled.arrivedAt).toBe(1_000)
    expect(backend.plans).toHaveLength(1)
    expect(world.unrest()).toEqual([])
  })

  it.each([
    ['says at once', 0],
    ['says nothing', undefined],
  ])('is left alone for a while though it %s', async (_what, retryAfterUs) => {
    const { world, backend } = await VirtualWorld.scripted([full(retryAfterUs), finished(3)])
    world.serve()
    await world.run()
    expect(backend.calledAt[1]! - backend.calledAt[0]!).toBeGreaterThanOrEqual(50_000)
  })

  it('leaves nothing behind when the client goes while it waits', async () => {
    const { world } = await VirtualWorld.scripted([full(2_000_000), finished(3)])
    const { done, cancellation } = world.serve()
    await world.run(world.virtual.now() + 100_000)
    cancellation.cancel('client-gone')
    expect(await done).toMatchObject({ outcome: 'cancelled', attempts: 1 })
    expect(world.unrest()).toEqual([])
    const before = world.virtual.now()
    await world.run()
    expect(world.virtual.now() - before).toBeLessThan(1_900_000)
  })

  it('takes nothing from a tenant that would rather be refused', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(100_000), finished(3)])
    const { done } = world.serve({ ...LONG, tenant: { ...ACME, contract: 'reject' } })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', rung: 'full' })
    expect(backend.plans[1]?.keptSegments).toHaveLength(22)
  })

  it('does not shorten an answer that must end whole, however often it refuses', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(100_000), full(100_000), full(100_000), finished(3)])
    const { done } = world.serve({ ...LONG, mustEndWhole: true })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', rung: 'trim-context' })
    expect(new Set(backend.plans.map(({ outputTokensMax }) => outputTokensMax))).toEqual(new Set([2_000]))
  })

  it('shortens any other answer', async () => {
    const { world, backend } = await VirtualWorld.scripted([full(100_000), full(100_000), full(100_000), finished(3)])
    const { done } = world.serve(LONG)
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', rung: 'cap-output' })
    expect(backend.plans.at(-1)?.outputTokensMax).toBe(384)
  })
})

describe('an engine that denies us', () => {
  it('is not asked again, at none of its pool’s replicas, and nobody is told to come back', async () => {
    const { world, backend } = await VirtualWorld.scripted([denied, finished(3)], { replicas: 3 })
    const { done, sink } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'failed', attempts: 1, refusal: { code: 'replica-denied' } })
    expect(sink.refusal?.retryAfterUs).toBeUndefined()
    expect(backend.plans).toHaveLength(1)
    expect(world.unrest()).toEqual([])
  })

  it('is told to the operator once, until it answers again', async () => {
    const { world } = await VirtualWorld.scripted([denied, denied, denied, finished(1), finished(1), denied])
    const { health } = world.platform.policies
    const told = () => world.entries.filter((entry) => entry.kind === 'replica-denied')
    for (let i = 0; i < 3; i++) {
      world.serve()
      await world.run()
    }
    const replicaId = `${MODEL}-local-0`
    const because = 'The engine answered 401: it does not accept our key.'
    expect(told()).toEqual([
      { kind: 'replica-denied', at: 1_001_000, replicaId, poolId: `${MODEL}-local`, isDenied: true, because },
    ])
    expect(health.deniedBecause(replicaId)).toBe(because)
    expect([...health.denials()]).toEqual([because])
    for (let i = 0; i < 2; i++) {
      world.serve()
      await world.run()
    }
    expect(told().map((entry) => entry.isDenied)).toEqual([true, false])
    expect([...health.denials()]).toEqual([])
    world.serve()
    await world.run()
    expect(told().map((entry) => entry.isDenied)).toEqual([true, false, true])
  })

  it('does not keep another pool from answering, on the same terms', async () => {
    const pool = { model: MODEL, backend: { kind: 'simulated' }, limit: { kind: 'fixed', concurrencyMax: 1 } }
    const pools = [
      { ...pool, id: 'hosted', replicas: 1 },
      { ...pool, id: 'own', replicas: 1 },
    ]
    const { world, backend } = await VirtualWorld.scripted([denied, finished(3)], { tree: { pools } })
    const { done } = world.serve(LONG)
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 2, rung: 'full' })
    expect(new Set(backend.replicaIds).size).toBe(2)
    expect(backend.plans[1]?.keptSegments).toHaveLength(22)
    expect(world.unrest()).toEqual([])
  })
})
