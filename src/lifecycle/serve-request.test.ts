import { describe, expect, it } from 'vitest'
import { finished, lost, refusedBy } from '../../test/support/scripted-backend.ts'
import { RecordingSink, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Slo } from '../domain/tenant.ts'

describe('a request that goes well', () => {
  it('arrives, is admitted, takes a turn, generates and is settled', async () => {
    const { world } = await VirtualWorld.scripted([finished(5)])
    const { sink, done, request } = world.serve()
    await world.run()
    const settled = await done
    expect(world.kinds(request.id)).toEqual(['arrived', 'admitted', 'granted', 'attempt-ended', 'settled'])
    expect(settled).toMatchObject({ outcome: 'completed', attempts: 1, usage: { outputTokens: 5 }, tenantId: 'acme' })
    expect(settled.at - settled.arrivedAt).toBe(6_000)
    expect(settled.firstTokenAt! - settled.arrivedAt).toBe(1_000)
    expect(settled.gaps).toMatchObject({ sumUs: 4_000, maxUs: 1_000 })
    expect(sink).toMatchObject({ tokens: 5, isWellFormed: true, usage: settled.usage, head: { rung: 'full' } })
    expect(sink.calls.at(-1)).toBe('finish')
    expect(world.unrest()).toEqual([])
  })

  it('tells whether its promise was kept, which only an admitted request has', async () => {
    const broken = { deltas: 3, ending: { kind: 'lost', because: 'gone' } } as const
    const { world } = await VirtualWorld.scripted([finished(5), finished(5), finished(5), broken])
    const kept = async (more: Partial<Slo>): Promise<boolean | undefined> => {
      const slo = { name: 'test', ttftUs: 2_000_000, interTokenUs: 100_000, totalUs: 30_000_000, ...more }
      const { done } = world.serve({ slo })
      await world.run()
      return (await done).isKept
    }
    // First token after 1 ms, then one a millisecond, over after 6.
    expect(await kept({ interTokenUs: 1_000 })).toBe(true)
    expect(await kept({ interTokenUs: 999 })).toBe(false)
    // Refused: what nobody promised is not broken.
    expect(await kept({ ttftUs: 999 })).toBe(undefined)
    expect(await kept({})).toBe(true)
    expect(await kept({})).toBe(false)
  })

  it('is counted from what passed through our hands when the engine tells no usage', async () => {
    const { world } = await VirtualWorld.scripted([{ deltas: 3, ending: { kind: 'finished', usage: undefined } }])
    const { done } = world.serve()
    await world.run()
    expect((await done).usage).toEqual({ promptTokens: 20, cachedTokens: 0, outputTokens: 3 })
  })

  it.each([
    ['far too much', 1e300, 1e300, 200],
    ['more cached than read', 30, 7, 7],
    // Reasoning is not streamed: what was seen is no bound.
    ['more than was seen', 30, 150, 150],
  ])(
    'is charged what was asked for at most when the engine reports %s',
    async (_what, promptTokens, told, outputTokens) => {
      const usage = { promptTokens, cachedTokens: 1e300, outputTokens: told }
      const { world } = await VirtualWorld.scripted([{ deltas: 3, ending: { kind: 'finished', usage } }])
      const { done, sink } = world.serve({ outputTokensMax: 100, choiceCount: 2 })
      await world.run()
      const settled = await done
      expect(settled.usage.outputTokens).toBe(outputTokens)
      const windows = 2 * world.config.models[0]!.contextTokensMax
      expect(settled.usage.promptTokens).toBe(Math.min(promptTokens, windows))
      expect(settled.usage.cachedTokens).toBe(settled.usage.promptTokens)
      expect(sink.usage).toEqual(settled.usage)
      expect(world.unrest()).toEqual([])
    },
  )

  it('has a head even if it has no delta', async () => {
    const { world } = await VirtualWorld.scripted([finished(0)])
    const { sink } = world.serve()
    await world.run()
    expect(sink.calls).toEqual(['start', 'finish'])
    expect(world.unrest()).toEqual([])
  })

  it('waits for its turn, in order, while the replica is busy', async () => {
    const { world, backend } = await VirtualWorld.scripted([finished(4)])
    const all = [world.serve(), world.serve(), world.serve()]
    expect(world.platform.turnstile.view()).toMatchObject({ inFlight: 1, waiting: 2 })
    await world.run()
    const waits = all.map(({ settled }) => settled!.grantedAt! - settled!.admittedAt!)
    expect(waits).toEqual([0, 5_000, 10_000])
    expect(backend.openCount).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('waits for a slow reader before it writes on', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)])
    const sink = new RecordingSink()
    sink.onWrite = () => world.clock.sleep(10_000)
    const { done } = world.serve({}, sink)
    await world.run()
    expect((await done).at - (await done).arrivedAt).toBe(34_000)
    expect(world.unrest()).toEqual([])
  })
})

describe('a request that is not taken', () => {
  it('is rejected when the queue is full, and has cost nothing', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)], { queueMax: 1 })
    const [, , third] = [world.serve(), world.serve(), world.serve()]
    const settled = await third!.done
    expect(settled).toMatchObject({ outcome: 'rejected', attempts: 0, admittedAt: undefined })
    expect(settled.usage.promptTokens).toBe(0)
    expect(settled.at).toBe(settled.arrivedAt)
    expect(third!.sink).toMatchObject({ calls: ['fail'], refusal: { code: 'queue-full', blame: 'platform' } })
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('is rejected when it cannot fit, or when nobody serves its model', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const tooLong = world.serve({ segments: [{ role: 'user', tokens: 1_000_000 }] })
    const unknown = world.serve({ model: 'gpt-17' })
    expect(await tooLong.done).toMatchObject({ outcome: 'rejected', refusal: { code: 'context-length-exceeded' } })
    expect(await unknown.done).toMatchObject({ outcome: 'rejected', refusal: { code: 'model-not-found' } })
    expect(world.unrest()).toEqual([])
  })

  it('expires in the queue at its limit, not later, before it cost anything', async () => {
    const { world, backend } = await VirtualWorld.scripted([{ deltas: 0, ending: 'hangs' }], { waitMsMax: 50 })
    const first = world.serve()
    const second = world.serve()
    await world.run(world.virtual.now() + 60_000)
    expect(second.settled).toMatchObject({ outcome: 'expired', attempts: 0, refusal: { code: 'waited-too-long' } })
    expect(second.settled!.at - second.settled!.admittedAt!).toBe(50_000)
    expect(backend.replicaIds).toHaveLength(1)
    first.cancellation.cancel('client-gone')
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('expires at its deadline when that comes first', async () => {
    const { world } = await VirtualWorld.scripted([{ deltas: 0, ending: 'hangs' }])
    const first = world.serve()
    const second = world.serve({ outputTokensMax: 4, deadlineAt: world.virtual.now() + 900_000 })
    await world.run(world.virtual.now() + 1_000_000)
    expect(second.settled).toMatchObject({ outcome: 'expired' })
    expect(second.settled!.at - second.settled!.arrivedAt).toBe(900_000)
    first.cancellation.cancel('client-gone')
    await world.run()
    expect(world.unrest()).toEqual([])
  })
})

describe('a replica that does not deliver', () => {
  it.each([
    ['was lost', lost(0)],
    ['refused', refusedBy('platform')],
  ])('is tried once more when it %s before the first delta', async (_what, turnout) => {
    const { world, backend } = await VirtualWorld.scripted([turnout, finished(3)], { replicas: 2 })
    const { done, sink, request } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(backend.replicaIds).toHaveLength(2)
    expect(sink.isWellFormed).toBe(true)
    expect(world.kinds(request.id)).toEqual([
      'arrived',
      'admitted',
      'granted',
      'attempt-ended',
      'granted',
      'attempt-ended',
      'settled',
    ])
    expect(world.unrest()).toEqual([])
  })

  it('is tried elsewhere, while there is an elsewhere', async () => {
    const { world, backend } = await VirtualWorld.scripted([lost(0), finished(3)], { replicas: 2 })
    world.serve()
    await world.run()
    expect(new Set(backend.replicaIds).size).toBe(2)
  })

  it('goes before all others that wait, for its second try', async () => {
    const { world } = await VirtualWorld.scripted([lost(0), finished(1)])
    const [first, , third] = [world.serve(), world.serve(), world.serve()]
    await world.run()
    // The freed turn goes to the second, which waits already; the next one is ours again.
    expect(first!.settled!.grantedAt).toBeLessThan(third!.settled!.grantedAt!)
    expect(world.unrest()).toEqual([])
  })

  it('fails after the second try, and says why', async () => {
    const { world, backend } = await VirtualWorld.scripted([lost(0)])
    const { done, sink } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'failed', attempts: 2, refusal: { code: 'replica-lost' } })
    expect(sink.calls).toEqual(['fail'])
    expect(backend.replicaIds).toHaveLength(2)
    expect(world.unrest()).toEqual([])
  })

  it('is not tried again once the client has seen something', async () => {
    const { world } = await VirtualWorld.scripted([lost(2), finished(3)])
    const { done, sink } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'failed', attempts: 1, usage: { outputTokens: 2 } })
    expect(sink.calls).toEqual(['start', 'write', 'write', 'fail'])
    expect(world.unrest()).toEqual([])
  })

  it('is not tried again with a request that is itself at fault', async () => {
    const { world } = await VirtualWorld.scripted([refusedBy('request'), finished(3)])
    const { done } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'failed', attempts: 1, refusal: { code: 'replica-rejected-request' } })
    expect(world.unrest()).toEqual([])
  })

  it('may expire while it waits for its second try', async () => {
    const { world } = await VirtualWorld.scripted(
      [{ deltas: 0, everyUs: 30_000, ending: { kind: 'lost', because: 'x' } }],
      {
        waitMsMax: 20,
      },
    )
    const { done } = world.serve()
    await world.run()
    expect((await done).outcome).toMatch(/^(expired|failed)$/)
    expect(world.unrest()).toEqual([])
  })
})

describe('an answer that is late', () => {
  const slow = { deltas: 10, everyUs: 200_000, ending: finished(10).ending }

  it('goes on when only our own promise is broken', async () => {
    const { world } = await VirtualWorld.scripted([slow])
    const { done, sink } = world.serve({ outputTokensMax: 4, deadlineAt: world.virtual.now() + 1_000_000 })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(sink.tokens).toBe(10)
    expect(world.unrest()).toEqual([])
  })

  it('ends at the deadline when that is hard: told so, counted as late, charged for what it got', async () => {
    const { world, backend } = await VirtualWorld.scripted([slow])
    const late = { outputTokensMax: 4, deadlineAt: world.virtual.now() + 1_000_000, isCutOff: true }
    const { done, sink } = world.serve(late)
    await world.run()
    const settled = await done
    expect(settled).toMatchObject({ outcome: 'expired', usage: { outputTokens: 4 }, attempts: 1 })
    expect(settled.at - settled.arrivedAt).toBe(1_000_000)
    expect(sink.refusal).toMatchObject({ code: 'deadline-passed', retryAfterUs: undefined })
    expect(sink.isWellFormed).toBe(true)
    expect(backend.openCount).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('leaves no timer behind when it was in time', async () => {
    const { world } = await VirtualWorld.scripted([finished(2)])
    const { done } = world.serve({ isCutOff: true })
    await world.run(world.virtual.now() + 10_000)
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(world.unrest()).toEqual([])
  })

  it('may be silent for half of its time, and the last attempt for as long as it likes', async () => {
    const { world, backend } = await VirtualWorld.scripted([lost(0), finished(2)], { replicas: 2 })
    const startedAt = world.virtual.now()
    const { done } = world.serve({ deadlineAt: startedAt + 60_000_000 })
    await world.run()
    await done
    expect(backend.firstTokenBys).toEqual([startedAt + 30_000_000, undefined])
  })
})

describe('something that should not happen', () => {
  it.each([
    ['before the first delta', 0],
    ['in the middle', 2],
  ])('a backend that throws %s fails its ticket, is counted, and the process goes on', async (_when, deltas) => {
    const { world } = await VirtualWorld.scripted([{ deltas, ending: 'throws' }, finished(2)])
    const [broken, fine] = [world.serve(), world.serve()]
    await world.run()
    expect(broken!.settled).toMatchObject({ outcome: 'failed', usage: { outputTokens: deltas } })
    expect(broken!.sink.refusal).toMatchObject({ code: 'internal-error' })
    expect(broken!.sink.isWellFormed).toBe(true)
    expect(fine!.settled).toMatchObject({ outcome: 'completed' })
    expect(world.entries.filter((entry) => entry.kind === 'fault-seen')).toMatchObject([
      { where: 'serve-request', ticketId: broken!.request.id, because: 'Error: the backend is broken' },
    ])
    expect(world.unrest()).toEqual([])
  })

  it('a sink that throws fails its own ticket and no other, on a real engine', async () => {
    const script = { promptTokens: 20, outputTokens: 6, prefixHashes: [], finishReason: 'stop' } as const
    const textual = { ...script, textBetween: () => 'x' }
    const { world, drivers } = await VirtualWorld.simulated(textual, { concurrencyMax: 4 })
    const sink = new RecordingSink()
    sink.onWrite = () => {
      if (sink.tokens === 3) throw new Error('the sink is broken')
      return undefined
    }
    const [broken, fine] = [world.serve({}, sink), world.serve()]
    await world.run()
    expect(broken.settled).toMatchObject({ outcome: 'failed' })
    expect(fine.settled).toMatchObject({ outcome: 'completed', usage: { outputTokens: 6 } })
    expect(drivers[0]!.view()).toMatchObject({ running: 0, waiting: 0 })
    expect(world.unrest()).toEqual([])
  })

  it('a sink whose promise is broken fails its ticket too', async () => {
    const script = { promptTokens: 20, outputTokens: 6, prefixHashes: [], finishReason: 'stop' } as const
    const { world, drivers } = await VirtualWorld.simulated({ ...script, textBetween: () => 'x' })
    const sink = new RecordingSink()
    sink.onWrite = () => (sink.tokens === 2 ? Promise.reject(new Error('no more')) : undefined)
    const broken = world.serve({}, sink)
    await world.run()
    expect(broken.settled).toMatchObject({ outcome: 'failed' })
    expect(drivers[0]!.view()).toMatchObject({ running: 0, waiting: 0 })
    expect(world.unrest()).toEqual([])
  })

  it('a meter that breaks while it learns changes no outcome, and is counted', async () => {
    const { world } = await VirtualWorld.scripted([finished(3)])
    const breaks = (): never => {
      throw new Error('the meter is broken')
    }
    Object.assign(world.platform.policies.outputs, { observe: breaks })
    Object.assign(world.platform.policies.calibration, { observe: breaks })
    const [first, second] = [world.serve(), world.serve()]
    await world.run()
    for (const { settled, sink } of [first!, second!]) {
      expect(settled).toMatchObject({ outcome: 'completed', usage: { outputTokens: 3 } })
      expect(sink.calls.at(-1)).toBe('finish')
    }
    const faults = world.entries.filter((entry) => entry.kind === 'fault-seen')
    expect(faults.length).toBeGreaterThanOrEqual(2)
    expect(faults[0]).toMatchObject({ where: 'learn', ticketId: first!.request.id })
    expect(world.unrest()).toEqual([])
  })

  it('a client that cannot be told of its ending has ended all the same, once', async () => {
    const { world } = await VirtualWorld.scripted([finished(2)])
    const sink = new RecordingSink()
    sink.finish = () => {
      throw new Error('nobody is there')
    }
    const { done } = world.serve({}, sink)
    const failure = done.catch((error: unknown) => error)
    await world.run()
    expect(await failure).toMatchObject({ message: 'nobody is there' })
    expect(world.entries.filter((entry) => entry.kind === 'settled')).toMatchObject([{ outcome: 'completed' }])
    expect(world.unrest()).toEqual([])
  })
})
