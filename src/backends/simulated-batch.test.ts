import { beforeAll, describe, expect, it } from 'vitest'
import { realTokenizer } from '../../test/support/engine-tokenizer.ts'
import { makeRequest } from '../../test/support/requests.ts'
import { Cancellation } from '../base/cancellation.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Delta } from '../domain/delta.ts'
import { FULL_RUNG, type Plan } from '../domain/plan.ts'
import { curveCost } from '../engine/batch-cost.ts'
import { BatchEngine, type BatchOptions } from '../engine/batch-engine.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { type BatchDriver, EngineDriver } from './engine-driver.ts'
import { PromptReader } from './prompt-reader.ts'
import { SimulatedBatchBackend } from './simulated-batch.ts'
import { SimulatedResults } from './simulated-results.ts'
import type { Tokenizer } from './tokenizer.ts'

let tokenizer: Tokenizer
beforeAll(async () => {
  tokenizer = await realTokenizer()
})

const OPTIONS: BatchOptions = {
  batchSizeMax: 4,
  batchTimeoutUs: 5_000,
  cost: curveCost([
    { size: 1, us: 10_000 },
    { size: 4, us: 16_000 },
  ]),
}

const plan = { rung: FULL_RUNG, keptSegments: [], outputTokensMax: 0 } as unknown as Plan
let leases = 0

class World {
  readonly clock = new VirtualClock(0)
  readonly driver: BatchDriver
  readonly backend: SimulatedBatchBackend

  constructor(options: Partial<BatchOptions> = {}) {
    this.driver = new EngineDriver(new BatchEngine({ ...OPTIONS, ...options }), this.clock)
    const reader = new PromptReader({ tokenizer, tokensMax: 100 })
    this.backend = new SimulatedBatchBackend(
      this.driver,
      new SimulatedResults({ kind: 'embedding', reader, contextTokensMax: 100 }),
    )
  }

  ask(input: string | string[], write?: (delta: Delta) => undefined) {
    const deltas: Array<{ delta: Delta; at: number }> = []
    const cancellation = new Cancellation()
    const request = makeRequest({ kind: 'embedding', text: { body: { model: 'm', input } } })
    const lease = { id: ++leases, ticketId: 'req_1', replica: {} as never }
    const sink = {
      write: write ?? ((delta: Delta): undefined => void deltas.push({ delta, at: this.clock.now() })),
    }
    const asked: { ending?: Ending; error?: unknown } = {}
    void this.backend.generate({ lease, request, plan, sink, cancellation }).then(
      (ending) => Object.assign(asked, { ending }),
      (error: unknown) => Object.assign(asked, { error }),
    )
    return { deltas, cancellation, asked }
  }
}

describe('a simulated model that answers in one go', () => {
  it('runs the texts of several requests in one batch, and answers when it is over', async () => {
    const world = new World()
    const one = world.ask(['a', 'b'])
    const other = world.ask('c')
    await world.clock.run()
    // Three wait 5 ms for a fourth, and take 14 ms together.
    for (const { deltas } of [one, other]) expect(deltas.map(({ at }) => at)).toEqual([19_000])
    const usage = { promptTokens: 2, cachedTokens: 0, outputTokens: 0 }
    expect(one.asked.ending).toEqual({ kind: 'finished', usage })
    expect(one.deltas[0]!.delta).toMatchObject({ tokens: 0, result: { kind: 'vectors' } })
    const { result } = one.deltas[0]!.delta
    expect(result?.kind === 'vectors' && result.vectors.length).toBe(2)
    expect(world.driver.view()).toMatchObject({ running: 0, waiting: 0, batches: 1, promptTokens: 3 })
  })

  it('answers a request that is larger than a batch when its last text is done', async () => {
    const world = new World()
    const { deltas } = world.ask(['a', 'b', 'c', 'd', 'e'])
    await world.clock.run()
    expect(deltas.map(({ at }) => at)).toEqual([26_000])
    expect(world.driver.view()).toMatchObject({ batches: 2 })
  })

  it('frees its items at once when it is called off, and says nothing more', async () => {
    const world = new World()
    const { deltas, cancellation, asked } = world.ask(['a', 'b'])
    const other = world.ask('c')
    world.clock.at(1_000, () => cancellation.cancel('client-gone'))
    await world.clock.run()
    expect(asked.ending).toEqual({ kind: 'cancelled' })
    expect(deltas).toEqual([])
    expect(world.driver.view()).toMatchObject({ running: 0, waiting: 0, aborted: 2 })
    expect(other.deltas.map(({ at }) => at)).toEqual([15_000])
  })

  it('takes all of a request or nothing', async () => {
    const world = new World({ waitingMax: 2 })
    const { asked } = world.ask(['a', 'b', 'c'])
    await world.clock.run()
    expect(asked.ending).toMatchObject({ kind: 'refused', refusal: { blame: 'platform' } })
    expect(world.driver.view()).toMatchObject({ waiting: 0, batches: 0 })
  })

  it('refuses as the request’s fault what no engine could take, and names it', async () => {
    const world = new World()
    const { asked } = world.ask('word '.repeat(200))
    await world.clock.run()
    expect(asked.ending).toMatchObject({ kind: 'refused', refusal: { blame: 'request', param: 'input' } })
  })

  it('fails the call when its sink breaks, and nobody else', async () => {
    const world = new World()
    const broken = world.ask('a', () => {
      throw new Error('the sink is broken')
    })
    const fine = world.ask('b')
    await world.clock.run()
    expect(broken.asked.error).toMatchObject({ message: 'the sink is broken' })
    expect(fine.asked.ending).toMatchObject({ kind: 'finished' })
  })
})
