import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadOf, naiveShares, type StepMember, shapleyShares } from '../../test/support/naive-shares.ts'
import { type EngineTime, spentUs } from '../domain/engine-time.ts'
import { Engine } from './engine.ts'
import { limitsOf, servingCoefficients } from './gpu-profile.ts'
import { findGpuProfile } from './gpu-profiles.ts'
import { stepUs } from './step-time.ts'

const profileOf = (name: string) => {
  const profile = findGpuProfile(name)
  if (profile === undefined) throw new Error(`there is no profile ${name}`)
  return { coefficients: servingCoefficients(profile), limits: limitsOf(profile) }
}

const H100 = profileOf('h100-llama-8b')

/** Steps of 2 to 10 sequences within a budget of 2,048 tokens: some decode, and at most one prompt is read beside them. */
const smallStep = fc
  .record({
    contexts: fc.array(fc.integer({ min: 20, max: 8_000 }), { minLength: 2, maxLength: 9 }),
    chunk: fc.option(
      fc.record({ tokens: fc.integer({ min: 16, max: 2_000 }), contextTokens: fc.integer({ min: 0, max: 4_000 }) }),
      { freq: 2 },
    ),
  })
  .map(({ contexts, chunk }): StepMember[] => [
    ...contexts.map((contextTokens) => ({ tokens: 1, contextTokens, isDecoding: true })),
    ...(chunk === null ? [] : [{ ...chunk, isDecoding: false }]),
  ])

const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] as number

describe('the closed-form split of a step', () => {
  it('is nearly the Shapley value for small steps: 0.2 % at the median, 2 % at p95 on an H100', () => {
    const steps = fc.sample(smallStep, { seed: 1, numRuns: 400 })
    const { coefficients } = H100
    const errors = steps.flatMap((members) => {
      const exact = shapleyShares(coefficients, members)
      const closed = naiveShares(coefficients, members, stepUs(coefficients, loadOf(members)))
      return exact.map((share, i) => Math.abs((closed[i] as number) - share) / share)
    })
    expect(quantile(errors, 0.5)).toBeLessThanOrEqual(0.002)
    expect(quantile(errors, 0.95)).toBeLessThanOrEqual(0.02)
  })

  it('adds up to the step, whatever the hardware', () => {
    fc.assert(
      fc.property(smallStep, fc.constantFrom('h100-llama-8b', 'h200-llama-8b', 'a100-llama-8b'), (members, name) => {
        const { coefficients } = profileOf(name)
        const us = stepUs(coefficients, loadOf(members))
        const sum = naiveShares(coefficients, members, us).reduce((total, share) => total + share, 0)
        expect(Math.abs(sum - us)).toBeLessThanOrEqual(1e-12 * us)
      }),
    )
  })
})

function shortEngine(): Engine {
  return new Engine(H100)
}

const total = (times: readonly (EngineTime | undefined)[]): number =>
  times.reduce((sum, time) => sum + (time === undefined ? 0 : spentUs(time)), 0)

describe('an engine that is asked for its sequences\u2019 time', () => {
  it('has given out all time that has passed, in the middle of a step and of a leap', () => {
    const engine = shortEngine()
    engine.submit(0, { id: 'a', promptTokens: 900, outputTokens: 400 })
    engine.submit(0, { id: 'b', promptTokens: 3_000, outputTokens: 400 })
    for (let now = 1_234; now < 2_000_000; now += 97_531) {
      engine.advance(now)
      const spent = total([engine.engineTime(now, 'a'), engine.engineTime(now, 'b')])
      // A boundary is told as a whole microsecond; the sum is that of whole steps and the part of the one that runs.
      expect(Math.abs(spent - now)).toBeLessThanOrEqual(2)
    }
  })

  it('charges a longer context more, and both less than alone', () => {
    const engine = shortEngine()
    engine.submit(0, { id: 'short', promptTokens: 100, outputTokens: 200 })
    engine.submit(0, { id: 'long', promptTokens: 8_000, outputTokens: 200 })
    engine.advance(1_000_000)
    const short = engine.engineTime(1_000_000, 'short') as EngineTime
    const long = engine.engineTime(1_000_000, 'long') as EngineTime
    expect(long.decodeUs).toBeGreaterThan(short.decodeUs)
    expect(long.prefillUs).toBeGreaterThan(short.prefillUs)
    for (const time of [short, long]) expect(time.aloneUs).toBeGreaterThan(1.5 * spentUs(time))
  })

  it('tells apart what a preemption made it read again', () => {
    const engine = new Engine({ ...H100, limits: { ...H100.limits, blockCount: 40 } })
    for (const id of ['a', 'b']) engine.submit(0, { id, promptTokens: 250, outputTokens: 200 })
    const times = new Map<string, EngineTime>()
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
      for (const event of engine.advance(at))
        if (event.kind === 'finished') times.set(event.id, event.time as EngineTime)
      engine.assertInvariants()
    }
    expect(times.get('a')?.againUs).toBe(0)
    expect(times.get('b')?.againUs).toBeGreaterThan(0)
  })

  it('tells what the prefix cache saved', () => {
    const engine = shortEngine()
    const prefixHashes = Array.from({ length: 100 }, (_, i) => i)
    engine.submit(0, { id: 'first', promptTokens: 1_605, outputTokens: 2, prefixHashes })
    const first = engine.advance(1_000_000).at(-1)
    engine.submit(1_000_000, { id: 'second', promptTokens: 1_605, outputTokens: 2, prefixHashes })
    const second = engine.advance(2_000_000).at(-1)
    const timeOf = (event: typeof first) => (event?.kind === 'finished' ? event.time : undefined) as EngineTime
    expect(timeOf(first).prefixSavedUs).toBe(0)
    // What was saved is about what the first took more for its prompt: the weights are read either way.
    const moreUs = timeOf(first).prefillUs - timeOf(second).prefillUs
    expect(timeOf(second).prefixSavedUs).toBeGreaterThan(0.8 * moreUs)
    expect(timeOf(second).prefixSavedUs).toBeLessThan(1.5 * moreUs)
  })
})
