import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Cancellation } from '../../src/base/cancellation.ts'
import type { Delta } from '../../src/domain/delta.ts'
import type { Plan } from '../../src/domain/plan.ts'
import { FULL_RUNG } from '../../src/domain/plan.ts'
import type { Request } from '../../src/domain/request.ts'
import type { Backend, Ending } from '../../src/lifecycle/ports.ts'
import { eventually, pause } from '../support/eventually.ts'
import { makeRequest } from '../support/requests.ts'
import { MODEL } from '../support/start-platform.ts'

/**
 * What every backend owes the request's story (`lifecycle/ports.ts`), whatever engine is behind it. A new backend is
 * correct when it passes this, run from a `….test.ts` that starts its engine.
 */
export interface BackendUnderTest {
  readonly backend: Backend
  /** Answers that the engine is still working on. */
  openCount(): number | Promise<number>
  close(): Promise<void>
}

/** Engines as the suite needs them: one that answers soon, one that takes its time, and those that cannot. */
export interface BackendKind {
  readonly name: string
  /** Answers every choice within a second, with several deltas when streamed. */
  well(): Promise<BackendUnderTest>
  /** Goes on answering for longer than any of these tests looks at it. */
  endless(): Promise<BackendUnderTest>
  /** Takes nothing now. */
  full(): Promise<BackendUnderTest>
  /** Cannot take this request, now or ever. */
  unable(): Promise<BackendUnderTest>
  /** Is not there, or breaks off before a token. Absent where the engine lives in this process. */
  readonly lost?: () => Promise<BackendUnderTest>
  /** Breaks off after some tokens. */
  readonly lostInTheMiddle?: () => Promise<BackendUnderTest>
}

/** Remembers what is written, and whether it was allowed. */
class StrictSink {
  readonly deltas: Delta[] = []
  readonly violations: string[] = []
  #mayWrite = true
  /** Called for each delta; a promise means "slow reader". */
  onWrite: (count: number) => Promise<void> | undefined = () => undefined

  write(delta: Delta): Promise<void> | undefined {
    if (!this.#mayWrite) this.violations.push(`delta ${this.deltas.length + 1} was written when it should not`)
    this.deltas.push(delta)
    const wait = this.onWrite(this.deltas.length)
    if (wait === undefined) return undefined
    this.#mayWrite = false
    return wait.then(() => {
      this.#mayWrite = true
    })
  }

  forbid(): void {
    this.#mayWrite = false
  }

  get tokens(): number {
    return this.deltas.reduce((sum, delta) => sum + delta.tokens, 0)
  }

  textOf(index: number): string {
    return this.#choices(index)
      .map((choice) => choice.content ?? '')
      .join('')
  }

  finishesOf(index: number): string[] {
    return this.#choices(index).flatMap((choice) => choice.finishReason ?? [])
  }

  #choices(index: number) {
    return this.deltas.flatMap((delta) => delta.choices ?? []).filter((choice) => choice.index === index)
  }
}

interface Started {
  readonly sink: StrictSink
  readonly cancellation: Cancellation
  readonly ending: Promise<Ending>
}

let leases = 0

function begin(backend: Backend, overrides: Partial<Request> = {}, sink = new StrictSink()): Started {
  const body = {
    model: MODEL,
    messages: [{ role: 'user', content: 'What is a weir? A weir holds the water. It is a low dam.' }],
    stream: overrides.isStreamed ?? true,
    n: overrides.choiceCount ?? 1,
    seed: 1,
  }
  const request = makeRequest({ text: { body }, outputTokensMax: 30, ...overrides })
  const plan: Plan = {
    rung: FULL_RUNG,
    model: MODEL,
    releaseId: 'm@1',
    segments: request.segments,
    keptSegments: [0],
    outputTokensMax: request.outputTokensMax ?? 100,
    sentTokensMax: request.outputTokensMax ?? 100,
    estimate: { promptTokens: 20, cachedTokens: 0, outputTokens: 10, outputTokensHigh: 10, cost: 60, engineUs: 0 },
  }
  const replica = { id: 'r-0', poolId: 'p', model: MODEL, releaseId: 'm@1', region: 'local' }
  const lease = { id: ++leases, ticketId: request.id, replica }
  const cancellation = new Cancellation()
  const ending = backend.generate({ lease, request, plan, sink, cancellation })
  const forbid = (): void => sink.forbid()
  ending.then(forbid, forbid)
  return { sink, cancellation, ending }
}

export function describeBackend(kind: BackendKind): void {
  describe(`backend ${kind.name}`, () => {
    let under: BackendUnderTest
    const use = (make: () => Promise<BackendUnderTest>): void => {
      beforeEach(async () => {
        under = await make()
      })
      afterEach(() => under.close())
    }
    const isFree = () => eventually('the engine is free', async () => (await under.openCount()) === 0)

    describe('that is well', () => {
      use(() => kind.well())
      wellSuite(() => under, isFree)
    })
    describe('that takes its time', () => {
      use(() => kind.endless())
      endlessSuite(() => under, isFree)
    })
    describe('that refuses', () => {
      it.each(['full', 'unable'] as const)('says so as a value when it is %s, and has taken nothing', async (how) => {
        under = await kind[how]()
        const { sink, ending } = begin(under.backend)
        const blame = how === 'full' ? 'platform' : 'request'
        expect(await ending).toMatchObject({ kind: 'refused', refusal: { blame } })
        expect(sink.deltas).toEqual([])
        await isFree()
        await under.close()
      })
    })
    const { lost, lostInTheMiddle } = kind
    it.each(lost === undefined ? [] : [lost])('that is lost says so as a value, and is not ready', async (make) => {
      under = await make()
      const { sink, ending } = begin(under.backend)
      expect(await ending).toMatchObject({ kind: 'lost' })
      expect(sink.deltas).toEqual([])
      const report = await under.backend.probe({
        id: 'r-0',
        poolId: 'p',
        model: MODEL,
        releaseId: 'm@1',
        region: 'local',
      })
      expect(report).toMatchObject({ isReady: false })
      await under.close()
    })
    it.each(lostInTheMiddle === undefined ? [] : [lostInTheMiddle])(
      'that is lost in the middle leaves what came, then says so',
      async (make) => {
        under = await make()
        const { sink, ending } = begin(under.backend)
        expect(await ending).toMatchObject({ kind: 'lost' })
        expect(sink.tokens).toBeGreaterThan(0)
        expect(sink.violations).toEqual([])
        await under.close()
      },
    )
  })
}

function wellSuite(under: () => BackendUnderTest, isFree: () => Promise<unknown>): void {
  it('is ready', async () => {
    const replica = { id: 'r-0', poolId: 'p', model: MODEL, releaseId: 'm@1', region: 'local' }
    expect(await under().backend.probe(replica)).toMatchObject({ isReady: true })
  })

  it.each([true, false])('finishes with usage, and every choice with a reason (streamed: %s)', async (isStreamed) => {
    for (const choiceCount of [1, 3]) {
      const { sink, ending } = begin(under().backend, { choiceCount, isStreamed })
      const ended = await ending
      expect(ended).toMatchObject({ kind: 'finished' })
      const usage = ended.kind === 'finished' ? ended.usage : undefined
      expect(usage!.promptTokens).toBeGreaterThan(0)
      expect(usage!.outputTokens).toBe(sink.tokens)
      for (let index = 0; index < choiceCount; index++) {
        expect(sink.textOf(index).length).toBeGreaterThan(5)
        expect(sink.finishesOf(index)).toHaveLength(1)
      }
      expect(sink.textOf(choiceCount)).toBe('')
      expect(sink.violations).toEqual([])
      await isFree()
    }
  })

  it('says the same to a slow reader, and writes nothing while it waits', async () => {
    const fast = begin(under().backend)
    await fast.ending
    const sink = new StrictSink()
    sink.onWrite = (count) => (count % 2 === 1 ? pause(15) : undefined)
    const slow = begin(under().backend, {}, sink)
    expect(await slow.ending).toMatchObject({ kind: 'finished' })
    expect(sink.violations).toEqual([])
    expect(sink.textOf(0)).toBe(fast.sink.textOf(0))
    // While a busy machine holds the reader up, an engine gathers: at least one pause lay between two pieces.
    expect(sink.deltas.length).toBeGreaterThan(1)
  })

  it('serves many at once', async () => {
    const all = Array.from({ length: 20 }, () => begin(under().backend))
    const endings = await Promise.all(all.map(({ ending }) => ending))
    expect(new Set(endings.map((ending) => ending.kind))).toEqual(new Set(['finished']))
    expect(new Set(all.map(({ sink }) => sink.textOf(0))).size).toBe(1)
    await isFree()
  })

  it('fails the call when its sink breaks, and frees the engine', async () => {
    const sink = new StrictSink()
    sink.onWrite = () => {
      throw new Error('the sink is broken')
    }
    await expect(begin(under().backend, {}, sink).ending).rejects.toThrow('the sink is broken')
    expect(sink.deltas).toHaveLength(1)
    await isFree()
  })
}

function endlessSuite(under: () => BackendUnderTest, isFree: () => Promise<unknown>): void {
  const cancelAndCheck = async ({ sink, cancellation, ending }: Started): Promise<void> => {
    const written = sink.deltas.length
    cancellation.cancel('client-gone')
    sink.forbid()
    // At once: without waiting for the network or the next token.
    const settled = await Promise.race([ending, new Promise((resolve) => setImmediate(resolve))])
    expect(settled).toMatchObject({ kind: 'cancelled' })
    await isFree()
    expect(sink.violations).toEqual([])
    expect(sink.deltas).toHaveLength(written)
  }

  it('ends at once when it is called off before it begins', async () => {
    const started = begin(under().backend, { outputTokensMax: 1_000 })
    await cancelAndCheck(started)
    expect(started.sink.deltas).toEqual([])
  })

  it.each([1, 2])('ends at once when it is called off in the middle of %i choices', async (choiceCount) => {
    const started = begin(under().backend, { choiceCount, outputTokensMax: 1_000 })
    await eventually('some deltas', () => started.sink.deltas.length >= 3)
    await cancelAndCheck(started)
    expect(started.sink.tokens).toBeGreaterThanOrEqual(3)
  })

  it('ends at once when it is called off while its reader is slow', async () => {
    const sink = new StrictSink()
    let release = (): void => {}
    sink.onWrite = () =>
      new Promise((resolve) => {
        release = resolve
      })
    const started = begin(under().backend, { outputTokensMax: 1_000 }, sink)
    await eventually('one delta', () => sink.deltas.length === 1)
    await cancelAndCheck(started)
    release()
    await pause(20)
    expect(sink.deltas).toHaveLength(1)
  })

  it('does not mind being called off twice, or after it has ended', async () => {
    const started = begin(under().backend, { outputTokensMax: 1_000 })
    await cancelAndCheck(started)
    started.cancellation.cancel('again')
    const { engineTime: _engineTime, ...told } = await started.ending
    expect(told).toEqual({ kind: 'cancelled' })
  })
}
