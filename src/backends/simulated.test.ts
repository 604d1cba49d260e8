import { describe, expect, it } from 'vitest'
import { Cancellation } from '../base/cancellation.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Delta } from '../domain/delta.ts'
import { NO_ENGINE_TIME, spentUs } from '../domain/engine-time.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { Engine } from '../engine/engine.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { EngineDriver } from './engine-driver.ts'
import { type Script, type Scripts, type ScriptsMade, SimulatedBackend } from './simulated.ts'

const COEFFICIENTS = findGpuProfile('h100-llama-8b')!.coefficients
const LIMITS: EngineLimits = { sequencesMax: 8, tokenBudget: 512, blockCount: 1_000, blockTokens: 16 }

const script = (more: Partial<Script> = {}): Script => ({
  promptTokens: 100,
  sharesPrompt: false,
  outputTokens: 20,
  prefixHashes: [],
  textBetween: (from, to) => Array.from({ length: to - from }, (_, i) => `${from + i} `).join(''),
  finishReason: 'stop',
  ...more,
})

const NOTHING = { running: 0, waiting: 0, kvUsageRatio: 0, timers: 0 }

/** One backend in virtual time; what its sink got, and when. */
class Rig {
  readonly clock = new VirtualClock()
  readonly driver: EngineDriver
  readonly deltas: Array<Delta & { readonly at: number }> = []
  readonly cancellation = new Cancellation()
  readonly #backend: SimulatedBackend
  onWrite: (delta: Delta) => Promise<void> | undefined = () => undefined

  constructor(scripts: readonly Script[] | (() => ScriptsMade | Promise<ScriptsMade>), limits = LIMITS) {
    this.driver = new EngineDriver(new Engine({ coefficients: COEFFICIENTS, limits }), this.clock)
    const scriptsFor: Scripts['scriptsFor'] =
      typeof scripts === 'function' ? scripts : () => ({ kind: 'made', scripts: [...scripts] })
    this.#backend = new SimulatedBackend(this.driver, { scriptsFor })
  }

  generate(onTaken?: () => void, leaseId = 1): Promise<Ending> {
    const call: Call = {
      lease: {
        id: leaseId,
        ticketId: 't',
        replica: { id: 'r', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'x' },
      },
      request: { tenant: { id: 'acme' } } as unknown as Request,
      plan: {} as Plan,
      cancellation: this.cancellation,
      sink: {
        write: (delta) => {
          this.deltas.push({ ...delta, at: this.clock.now() })
          return this.onWrite(delta)
        },
      },
    }
    return this.#backend.generate(call, onTaken)
  }

  get tokens(): number {
    return this.deltas.reduce((sum, delta) => sum + delta.tokens, 0)
  }

  get text(): string {
    return this.deltas
      .flatMap((delta) => delta.choices ?? [])
      .map(({ content }) => content)
      .join('')
  }

  /** What is still held of engine and clock. */
  get held(): Record<string, number> {
    const { running, waiting, kvUsageRatio } = this.driver.view()
    return { running, waiting, kvUsageRatio, timers: this.clock.pendingCount }
  }
}

describe('SimulatedBackend', () => {
  it('sends every token when the engine makes it, to the microsecond', async () => {
    const rig = new Rig([script()])
    const ending = rig.generate()
    await rig.clock.run()
    const { engineTime, ...told } = await ending
    expect(told).toEqual({ kind: 'finished', usage: { promptTokens: 100, cachedTokens: 0, outputTokens: 20 } })
    // Alone in its engine, all of whose time is its own.
    expect(spentUs(engineTime ?? NO_ENGINE_TIME)).toBeCloseTo(engineTime?.aloneUs ?? 0, -1)
    expect(engineTime?.decodeUs).toBeGreaterThan(0)
    // The same sequence in an engine without a clock.
    const engine = new Engine({ coefficients: COEFFICIENTS, limits: LIMITS })
    engine.submit(0, { id: 'a', promptTokens: 100, outputTokens: 20, reports: 'every-step' })
    const instants: number[] = []
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
      for (const event of engine.advance(at)) instants.push(event.at)
    }
    expect(rig.deltas.map(({ at }) => at)).toEqual(instants)
    expect(rig.text).toBe(script().textBetween?.(0, 20))
    expect(rig.deltas.at(-1)?.choices?.[0]?.finishReason).toBe('stop')
    expect(rig.held).toEqual(NOTHING)
  })

  it('tells few deltas and their mean gap where there is no text', async () => {
    const { textBetween: _none, ...silent } = script()
    const rig = new Rig([silent])
    const ending = rig.generate()
    await rig.clock.run()
    expect(await ending).toMatchObject({ usage: { outputTokens: 20 } })
    expect(rig.deltas.map(({ tokens }) => tokens)).toEqual([1, 19])
    const [first, last] = rig.deltas
    expect(last?.innerGapUs).toBe(Math.round((last!.at - first!.at) / 19))
    expect(first?.choices).toBeUndefined()
  })

  it('holds a slow reader’s tokens as counts, and sends them as one delta when it has caught up', async () => {
    const rig = new Rig([script({ outputTokens: 200 })])
    let release = (): void => {}
    rig.onWrite = () => (rig.deltas.length === 3 ? new Promise<void>((resolve) => (release = resolve)) : undefined)
    const ending = rig.generate()
    await rig.clock.run(2_000_000)
    expect(rig.deltas).toHaveLength(3)
    // The engine has gone on and is done; the answer is not.
    expect(rig.driver.view().running).toBe(0)
    release()
    await expect(ending).resolves.toMatchObject({ kind: 'finished', usage: { outputTokens: 200 } })
    expect(rig.deltas.map(({ tokens }) => tokens)).toEqual([1, 1, 1, 197])
    expect(rig.deltas.at(-1)?.innerGapUs).toBeGreaterThan(1_000)
    expect(rig.text).toBe(script().textBetween?.(0, 200))
  })

  it('writes nothing while blocked, whichever choice has tokens, and blocks again if told so', async () => {
    const rig = new Rig([script(), script({ sharesPrompt: true }), script({ sharesPrompt: true })])
    let releases: Array<() => void> = []
    let isWaiting = false
    rig.onWrite = () => {
      expect(isWaiting).toBe(false)
      isWaiting = true
      return new Promise<void>((resolve) =>
        releases.push(() => {
          isWaiting = false
          resolve()
        }),
      )
    }
    const ending = rig.generate()
    for (let round = 0; round < 40; round++) {
      await rig.clock.run(rig.clock.now() + 20_000)
      const due = releases
      releases = []
      for (const release of due) release()
    }
    expect(await ending).toMatchObject({ usage: { promptTokens: 100, outputTokens: 60 } })
    for (const index of [0, 1, 2]) {
      const mine = rig.deltas.flatMap((delta) => delta.choices ?? []).filter((choice) => choice.index === index)
      expect(mine.map(({ content }) => content).join('')).toBe(script().textBetween?.(0, 20))
      expect(mine.filter(({ finishReason }) => finishReason !== null)).toHaveLength(1)
    }
  })

  it.each([
    ['before it begins', 0],
    ['while the prompt is computed', 500],
    ['in the middle', 60_000],
  ])('frees everything at once when called off %s', async (_, at) => {
    const rig = new Rig([script({ outputTokens: 500 }), script({ outputTokens: 500, sharesPrompt: true })])
    if (at === 0) rig.cancellation.cancel('client-gone')
    const ending = rig.generate()
    await rig.clock.run(at)
    rig.cancellation.cancel('client-gone')
    const { engineTime: _engineTime, ...endedAs } = await ending
    expect(endedAs).toEqual({ kind: 'cancelled' })
    expect(rig.driver.view()).toMatchObject({ running: 0, waiting: 0, kvUsageRatio: 0 })
    const told = rig.deltas.length
    await rig.clock.run()
    expect(rig.deltas).toHaveLength(told)
    expect(rig.held).toEqual(NOTHING)
  })

  it.each([1, 2])('ends an answer of %i tokens whose reader is slow from its first', async (outputTokens) => {
    for (const textBetween of [script().textBetween, undefined]) {
      const { textBetween: _text, ...plain } = script({ outputTokens })
      const rig = new Rig([textBetween === undefined ? plain : { ...plain, textBetween }])
      let release = (): void => {}
      rig.onWrite = () => (rig.deltas.length > 1 ? undefined : new Promise<void>((resolve) => (release = resolve)))
      const ending = rig.generate()
      await rig.clock.run()
      release()
      expect(await ending).toMatchObject({ kind: 'finished', usage: { outputTokens } })
      expect(rig.held).toEqual(NOTHING)
    }
  })

  it('is called off while blocked, and hears no more of the reader', async () => {
    const rig = new Rig([script()])
    let release = (): void => {}
    rig.onWrite = () => new Promise<void>((resolve) => (release = resolve))
    const ending = rig.generate()
    await rig.clock.run(50_000)
    rig.cancellation.cancel('reader-stalled')
    release()
    expect(await ending).toEqual({ kind: 'cancelled', engineTime: expect.any(Object) })
    await rig.clock.run()
    expect(rig.deltas).toHaveLength(1)
  })

  it('leaves no listener behind on a cancellation that outlives it', async () => {
    const rig = new Rig([script()])
    let forgotten = 0
    const onCancel = rig.cancellation.onCancel.bind(rig.cancellation)
    rig.cancellation.onCancel = (listener) => {
      const forget = onCancel(listener)
      return () => {
        forgotten++
        forget()
      }
    }
    const ending = rig.generate()
    await rig.clock.run()
    await ending
    expect(forgotten).toBe(1)
  })

  it.each([
    ['the prompt never fits', { blockCount: 5 }, 'replica-rejected-request', 'request'],
    ['the queue is full', { waitingMax: 1 }, 'replica-refused', 'platform'],
  ])('refuses when %s, and keeps none of the choices', async (_, limits, code, blame) => {
    const rig = new Rig([script(), script(), script()], { ...LIMITS, ...limits })
    let isTaken = false
    const ending = await rig.generate(() => {
      isTaken = true
    })
    expect(ending).toMatchObject({ kind: 'refused', refusal: { code, blame } })
    expect(isTaken).toBe(false)
    await rig.clock.run()
    expect(rig.held).toEqual(NOTHING)
  })

  it('says when it is taken, and passes on why a script was not made', async () => {
    const rig = new Rig([script()])
    let isTaken = false
    const ending = rig.generate(() => {
      isTaken = true
    })
    expect(isTaken).toBe(true)
    await rig.clock.run()
    await ending
    const refusing = new Rig(() => ({ kind: 'refused', because: 'too long.' }))
    expect(await refusing.generate()).toMatchObject({ refusal: { because: 'too long.', blame: 'request' } })
  })

  it('waits for a script that takes time, unless it is called off meanwhile', async () => {
    const late = () => Promise.resolve<ScriptsMade>({ kind: 'made', scripts: [script()] })
    const rig = new Rig(late)
    const ending = rig.generate()
    await rig.clock.run()
    await rig.clock.run()
    expect(await ending).toMatchObject({ kind: 'finished' })
    const left = new Rig(late)
    const calledOff = left.generate()
    left.cancellation.cancel('client-gone')
    expect(await calledOff).toEqual({ kind: 'cancelled', engineTime: expect.any(Object) })
    await left.clock.run()
    expect(left.held).toEqual(NOTHING)
    const broken = new Rig(() => Promise.reject(new Error('no script')))
    await expect(broken.generate()).rejects.toThrow('no script')
  })

  it('fails alone when its sink throws: others go on', async () => {
    const rig = new Rig([script()])
    rig.onWrite = () => {
      if (rig.deltas.length === 5) throw new Error('sink broke')
      return undefined
    }
    const broken = rig.generate(undefined, 1)
    const other = rig.generate(undefined, 2)
    const outcomes = Promise.allSettled([broken, other])
    await rig.clock.run()
    const [first, second] = await outcomes
    expect([first.status, second.status].toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(rig.held).toEqual(NOTHING)
  })

  it('bills a prompt once for all its choices, and what the cache gave of it', async () => {
    const prefixHashes = Array.from({ length: 6 }, (_, i) => i + 1)
    const rig = new Rig([script({ prefixHashes }), script({ prefixHashes, sharesPrompt: true })])
    const first = rig.generate(undefined, 1)
    await rig.clock.run()
    expect(await first).toMatchObject({ usage: { promptTokens: 100, cachedTokens: 0, outputTokens: 40 } })
    const again = rig.generate(undefined, 2)
    await rig.clock.run()
    expect(await again).toMatchObject({ usage: { promptTokens: 100, cachedTokens: 96, outputTokens: 40 } })
  })

  it('reports how busy it is', async () => {
    const rig = new Rig([script(), script()])
    const ending = rig.generate()
    await rig.clock.run(10_000)
    const backend = new SimulatedBackend(rig.driver, { scriptsFor: () => ({ kind: 'made', scripts: [] }) })
    const report = await backend.probe({ id: 'r', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'x' })
    expect(report).toMatchObject({ isReady: true, runningCount: 2, waitingCount: 0, preemptionCount: 0 })
    expect(report.kvUsageRatio).toBeGreaterThan(0)
    expect(report.kvTokensMax).toBe(LIMITS.blockCount * LIMITS.blockTokens)
    await rig.clock.run()
    await ending
  })
})
