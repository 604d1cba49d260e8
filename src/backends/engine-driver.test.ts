import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import { Engine } from '../engine/engine.ts'
import type { EngineEvent } from '../engine/engine-event.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'
import { EngineDriver, type EngineWatcher } from './engine-driver.ts'

const LIMITS = { sequencesMax: 4, tokenBudget: 256, blockCount: 500, blockTokens: 16 }

function makeDriver(watcher?: EngineWatcher) {
  const clock = new VirtualClock()
  const engine = new Engine({ coefficients: findGpuProfile('h100-llama-8b')!.coefficients, limits: LIMITS })
  const heard: EngineEvent[] = []
  const driver = new EngineDriver(engine, clock, watcher)
  const submit = (id: string, outputTokens = 10) =>
    driver.submit({ id, promptTokens: 50, outputTokens, reports: 'every-step' }, (event) => heard.push(event))
  return { clock, engine, driver, heard, submit }
}

describe('EngineDriver', () => {
  it('keeps one timer however many sequences there are, and none when idle', async () => {
    const { clock, submit, heard } = makeDriver()
    for (const id of 'abcdefgh') submit(id)
    expect(clock.pendingCount).toBe(1)
    await clock.run(20_000)
    expect(clock.pendingCount).toBe(1)
    await clock.run()
    expect(clock.pendingCount).toBe(0)
    expect(heard.filter(({ kind }) => kind === 'finished')).toHaveLength(8)
  })

  it('tells each event to whoever submitted it, and nothing after an abort', async () => {
    const { clock, driver, heard, submit, engine } = makeDriver()
    submit('a', 100)
    submit('b', 100)
    await clock.run(30_000)
    driver.abort('a')
    driver.abort('a')
    driver.abort('nobody')
    engine.assertInvariants()
    const before = heard.filter(({ id }) => id === 'a').length
    await clock.run()
    expect(heard.filter(({ id }) => id === 'a')).toHaveLength(before)
    expect(heard.at(-1)).toMatchObject({ kind: 'finished', id: 'b', usage: { outputTokens: 100 } })
    engine.assertInvariants()
  })

  it('lets a listener submit and abort while it is told', async () => {
    const { clock, driver, submit, heard } = makeDriver()
    submit('b', 100)
    driver.submit({ id: 'a', promptTokens: 50, outputTokens: 3, reports: 'every-step' }, (event) => {
      if (event.kind !== 'finished') return
      driver.abort('b')
      submit('c')
    })
    await clock.run()
    expect(heard.filter(({ id, kind }) => id === 'b' && kind === 'finished')).toHaveLength(0)
    expect(heard.at(-1)).toMatchObject({ kind: 'finished', id: 'c' })
    expect(driver.view()).toMatchObject({ running: 0, waiting: 0, aborted: 1 })
  })

  it('shows a watcher everything', async () => {
    const seen: string[] = []
    const { clock, driver, submit } = makeDriver({
      submitted: ({ id }, at) => seen.push(`${id} submitted at ${at}`),
      advanced: (_now, events) => seen.push(...events.map(({ id, kind }) => `${id} ${kind}`)),
      aborted: (id) => seen.push(`${id} aborted`),
    })
    submit('a', 2)
    submit('b', 50)
    await clock.run(30_000)
    driver.abort('b')
    expect(seen.filter((line) => line.startsWith('a'))).toEqual(['a submitted at 0', 'a first-token', 'a finished'])
    expect(seen.at(-1)).toBe('b aborted')
  })
})
