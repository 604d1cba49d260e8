import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../../test/support/scripted-backend.ts'
import { MODEL } from '../../../test/support/start-platform.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { ReplicaReport } from '../ports.ts'

const READY: ReplicaReport = { isReady: true, because: 'fine' }
const HANGS: Turnout = { deltas: 1, everyUs: 20_000, ending: 'hangs' }
const prompt = (tokens: number) => ({ segments: [{ role: 'user', tokens }] as const, outputTokensMax: 50 })

/** An engine that nobody has described, which tells what the test says. */
async function makeWorld(turnouts: readonly Turnout[], kind = 'fixed') {
  const pool = {
    model: MODEL,
    backend: { kind: 'simulated', hidden: true },
    limit: { kind, concurrencyMax: 64 },
  }
  const { world, backend } = await VirtualWorld.scripted(turnouts, { concurrencyMax: 64, tree: { pools: [pool] } })
  const { policies } = world.platform
  const replicaId = world.platform.pools[0]!.replicas[0]!.id
  const known = [...policies.poolsById.values()][0]!
  return {
    world,
    backend,
    known,
    learned: known.twins!.of(replicaId),
    room: () => policies.dispatcher.view().pools[0]!.replicas[0]!,
    report: async (gauges: Partial<ReplicaReport>): Promise<void> => {
      backend.probe = () => Promise.resolve({ ...READY, ...gauges })
      await world.run(world.virtual.now() + 1_000_000)
      await world.probe()
    },
  }
}

describe('the memory of an engine', () => {
  it('bounds requests when the engine tells it, and not before', async () => {
    const { world, known, room, report } = await makeWorld([finished(5)])
    expect([known.kvTokensMax, room().kvTokensMax]).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])
    expect((await served(world, 5_000)).outcome).toBe('completed')
    await report({ runningCount: 0, kvTokensMax: 4_000 })
    expect([known.kvTokensMax, room().kvTokensMax]).toEqual([4_000, 4_000])
    const { outcome, refusal } = await served(world, 5_000)
    expect([outcome, refusal?.code]).toEqual(['rejected', 'too-big'])
    expect((await served(world, 3_000)).outcome).toBe('completed')
    expect(world.unrest()).toEqual([])
  })

  it('bounds what runs together when it is guessed, and never what runs alone', async () => {
    const { world, known, learned, room, report } = await makeWorld([
      ...Array.from({ length: 8 }, () => HANGS),
      finished(5),
    ])
    const open = Array.from({ length: 8 }, () => world.serve(prompt(500)))
    for (let i = 0; i < 10; i++) await report({ runningCount: 8, waitingCount: 0, kvUsageRatio: 0.9 })
    const { tokensMax, isTold } = learned.kv.capacity!
    expect([isTold, room().kvTokensMax]).toEqual([false, tokensMax])
    expect(tokensMax).toBeGreaterThan((8 * 500) / 0.9)
    expect(tokensMax).toBeLessThan((8 * 550) / 0.9)
    expect(known.kvTokensMax).toBe(Number.POSITIVE_INFINITY)
    // Beside the eight there is no room for it; alone it runs, though the guess says that it does not fit.
    const big = world.serve(prompt(5_000))
    await world.run(world.virtual.now() + 1_000)
    expect(big.settled).toBeUndefined()
    for (const { cancellation } of open) cancellation.cancel('client-gone')
    await world.run()
    expect((await big.done).outcome).toBe('completed')
    expect(world.unrest()).toEqual([])
  })

  it('is unknown where the engine has no gauge for it, and an absent gauge empties no ledger', async () => {
    const { world, learned, room, report } = await makeWorld([finished(5)])
    await report({ runningCount: 3, kvUsageRatio: 0.5, kvTokensMax: 10_000 })
    expect([room().sequences, room().kvTokens]).toEqual([3, 5_000])
    await report({ runningCount: 4 })
    expect([room().sequences, room().kvTokens]).toEqual([4, 5_000])
    expect(learned.kv.capacity).toEqual({ tokensMax: 10_000, isTold: true })
    await world.run()
    expect([room().sequences, room().kvTokens]).toEqual([0, 0])
  })
})

describe('the ceiling of an engine', () => {
  it('falls when its count of preemptions grows, and by no count that is missing', async () => {
    const { learned, report } = await makeWorld([finished(5)])
    const { ceiling } = learned
    const before = ceiling.sequencesMax
    await report({ runningCount: 20, preemptionCount: 5 })
    await report({ runningCount: 20 })
    expect(ceiling.sequencesMax).toBe(before)
    await report({ runningCount: 20, preemptionCount: 7 })
    expect([ceiling.sequencesMax, ceiling.because]).toEqual([16, 'the engine preempted sequences'])
  })
})

describe('an engine that says its memory is full while nothing runs', () => {
  it('gets as much as one that says nothing', async () => {
    const answer: Turnout = { ...finished(50), everyUs: 10_000 }
    const { world, learned, report } = await makeWorld([answer])
    const all = []
    for (let second = 0; second < 20; second++) {
      for (let i = 0; i < 10; i++) all.push(world.serve(prompt(200)))
      // Idle, as it says, and what it has cached counts as in use.
      await report({ runningCount: 0, waitingCount: 0, kvUsageRatio: 0.99, kvTokensMax: 100_000 })
    }
    await world.run()
    expect(all.filter(({ settled }) => settled?.outcome === 'completed').length).toBe(200)
    expect(learned.ceiling.sequencesMax).toBe(48)
  })
})

describe('whole answers in one piece', () => {
  it('keep no place for their prompts once those should be read, and teach the twin nothing', async () => {
    const { world, known, backend } = await makeWorld([{ ...finished(1), everyUs: 8_000_000 }], 'auto')
    const all = Array.from({ length: 16 }, () => world.serve({ ...prompt(3_000), isStreamed: false }))
    await world.run(world.virtual.now() + 1_000)
    const atOnce = backend.openCount
    await world.run(world.virtual.now() + 7_000_000)
    expect([atOnce < 10, backend.openCount]).toEqual([true, 16])
    await world.run()
    expect(all.map(({ settled }) => settled?.outcome)).toEqual(all.map(() => 'completed'))
    expect(known.twins!.of(backend.replicaIds[0]!).twin.view().firstTokenError).toBeUndefined()
    expect(world.unrest()).toEqual([])
  })
})

describe('streams that a proxy hands over when they are whole', () => {
  it('are not taken for an engine that reads for half a second: it is not refused requests while it is free', async () => {
    const { world, known, backend } = await makeWorld([finished(1)], 'auto')
    backend.generate = async ({ sink, request }) => {
      const whole = Promise.withResolvers<void>()
      world.virtual.at(world.virtual.now() + 510_000, () => whole.resolve())
      await whole.promise
      void sink.write({ tokens: 1 })
      void sink.write({ tokens: 199 })
      return {
        kind: 'finished',
        usage: { promptTokens: request.segments[0]!.tokens, cachedTokens: 0, outputTokens: 200 },
      }
    }
    const all = []
    for (let i = 0; i < 200; i++) {
      const slo = { name: 'chat', ttftUs: 1_000_000, interTokenUs: 60_000, totalUs: 40_000_000 }
      all.push(world.serve({ ...prompt(1_000), outputTokensMax: 400, isStreamed: true, slo }))
      await world.run(world.virtual.now() + 100_000)
    }
    await world.run()
    expect(known.twins!.buffered.isUsual).toBe(true)
    const late = all.slice(100).filter(({ settled }) => settled?.outcome === 'completed')
    expect(late.length).toBeGreaterThanOrEqual(80)
    expect(world.unrest()).toEqual([])
  })
})

async function served(world: VirtualWorld, tokens: number) {
  const { done } = world.serve(prompt(tokens))
  await world.run(world.virtual.now() + 1_000_000)
  return done
}
