import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { Engine, type EngineOptions } from './engine.ts'
import { fullWorkPrices, fullWorkUs } from './full-work.ts'
import { limitsOf, servingCoefficients } from './gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from './gpu-profiles.ts'
import type { ReportPace } from './sequence.ts'

function optionsOf(name: string): EngineOptions {
  const profile = findGpuProfile(name)
  if (profile === undefined) throw new Error(`no profile ${name}`)
  return { coefficients: servingCoefficients(profile), limits: { ...limitsOf(profile), sequencesMax: 256 } }
}

/** Keeps this many sequences running for ten seconds, and says how busy the engine was and how much work it did. */
function useOf(options: EngineOptions, sequences: number): { busy: number; work: number } {
  const engine = new Engine(options)
  const endAt = secondsToUs(10)
  let submitted = 0
  const submit = (now: number): void => {
    submitted++
    engine.submit(now, { id: `s${submitted}`, promptTokens: 500, outputTokens: 100 + (submitted % 100) })
  }
  for (let i = 0; i < sequences; i++) submit(0)
  let now = 0
  for (let at = engine.nextEventAt(); at !== undefined && at <= endAt; at = engine.nextEventAt()) {
    now = Math.max(now, at)
    for (const event of engine.advance(now)) if (event.kind === 'finished') submit(now)
  }
  const view = engine.view(endAt)
  return { busy: view.busyUs / endAt, work: fullWorkUs(fullWorkPrices(options), view) / endAt }
}

describe('work at the price of a full engine', () => {
  it('tells one sequence alone from a full engine, where busy time cannot', () => {
    const alone = useOf(optionsOf('h100-llama-8b'), 1)
    const full = useOf(optionsOf('h100-llama-8b'), 192)
    expect(alone.busy).toBeGreaterThan(0.99)
    expect(full.busy).toBeGreaterThan(0.99)
    expect(alone.work).toBeLessThan(0.05)
    expect(full.work).toBeGreaterThan(0.9)
    expect(full.work).toBeLessThan(1.1)
  })

  it('grows with the load', () => {
    const works = [1, 8, 32, 96, 192].map((sequences) => useOf(optionsOf('h100-llama-8b'), sequences).work)
    expect(works).toEqual([...works].sort((a, b) => a - b))
  })

  it.each(gpuProfileNames())('has a price for everything on %s', (name) => {
    const { promptTokenUs, outputTokenUs, contextTokenUs } = fullWorkPrices(optionsOf(name))
    expect(promptTokenUs).toBeGreaterThan(0)
    expect(outputTokenUs).toBeGreaterThan(0)
    expect(contextTokenUs).toBeGreaterThanOrEqual(0)
  })
})

it('counts the context that is read, the same in leaps as step by step', () => {
  const options = optionsOf('h100-llama-8b')
  const run = (reports: ReportPace): number => {
    const engine = new Engine(options)
    engine.submit(0, { id: 'a', promptTokens: 10, outputTokens: 5, reports })
    engine.advance(secondsToUs(1))
    return engine.view(secondsToUs(1)).contextTokens
  }
  // The first token comes out of the prompt. Four steps read 11, 12, 13 and 14 tokens.
  expect(run('few')).toBe(50)
  expect(run('every-step')).toBe(50)
})
