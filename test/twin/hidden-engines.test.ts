import { describe, expect, it } from 'vitest'
import { speedOfEngine } from '../../src/engine/pool-speed.ts'
import { HiddenEngine, hiddenOptions, type LoopOptions, makeTwins, medianError } from '../support/hidden-engine.ts'

/**
 * A twin learns simulated engines of which it knows nothing: not even the built-in profile that they run is among its
 * priors. It has no gauges, and hears what a gateway hears. The engine is the real one: chunks, steps, interference.
 */
const TOKEN_ERROR = 0.05
const FIRST_TOKEN_ERROR = 0.15

const begin = (profile: string, options: Partial<LoopOptions> = {}): HiddenEngine =>
  new HiddenEngine({ engine: hiddenOptions(profile), twins: makeTwins(profile), seed: 1, sequencesMax: 48, ...options })

/** Median errors of the predictions over the next seconds. */
function errorsOver(engine: HiddenEngine, seconds: number): { token: number; firstToken: number } {
  const from = engine.now
  engine.run(seconds)
  return { token: medianError(engine.tokens, from), firstToken: medianError(engine.firstTokens, from) }
}

const isGood = ({ token, firstToken }: { token: number; firstToken: number }): boolean =>
  token < TOKEN_ERROR && firstToken < FIRST_TOKEN_ERROR

const HIDDEN = ['h200-llama-8b', 'h100-llama-70b-tp4', 'h200-llama-1b', 'a100-llama-8b-tp2', 'h100-llama-8b-fp8']

describe('a hidden engine', () => {
  it.each(HIDDEN)('%s is known after half a minute, in frames of any size', (profile) => {
    for (const frameTokens of [1, 4, 8, 32]) {
      const engine = begin(profile, { frameTokens })
      engine.run(30)
      expect(errorsOver(engine, 30)).toSatisfy(isGood)
      expect(engine.twin.isTrusted).toBe(true)
    }
  })

  it('that no profile comes near is known after five minutes: it answers once in two seconds', () => {
    const engine = begin('reference-a100')
    engine.run(300)
    expect(errorsOver(engine, 120)).toSatisfy(isGood)
  })

  it('is told about as it is within the range that was seen, and by the prior’s proportions beyond', () => {
    const engine = begin('h200-llama-8b', { sequencesMax: 16 })
    engine.run(40)
    const { twin } = engine
    expect([twin.isSeen(16), twin.isSeen(64)]).toEqual([true, false])
    const told = speedOfEngine(hiddenOptions('h200-llama-8b'), 4).steps!
    for (const sequences of [4, 12, 64, 120]) {
      const load = [sequences, 1_700 * sequences, 3 * sequences] as const
      const off = Math.abs(twin.meanTokenUs(...load) / told.meanTokenUs(...load) - 1)
      expect(off).toBeLessThan(twin.isSeen(sequences) ? 0.1 : 0.25)
    }
  })

  it.each([2, 0.5])('that takes %s times as long from the middle on is followed within 30 s', (factor) => {
    for (const profile of ['h200-llama-8b', 'h100-llama-70b-tp4']) {
      const engine = begin(profile)
      engine.run(40)
      engine.replace(hiddenOptions(profile, factor))
      // Not known at once, or the test would show nothing.
      expect(errorsOver(engine, 5).firstToken).toBeGreaterThan(FIRST_TOKEN_ERROR)
      engine.run(25)
      expect(errorsOver(engine, 20)).toSatisfy(isGood)
      expect(engine.twin.view().changes).toBeGreaterThan(0)
    }
  })

  it('that comes back with another model is followed within 30 s', () => {
    for (const [before, after] of [
      ['h200-llama-8b', 'a100-llama-70b-tp4'],
      ['h100-llama-70b-tp4', 'h200-llama-8b-fp8'],
    ] as const) {
      const engine = begin(before)
      engine.run(40)
      engine.replace(hiddenOptions(after))
      engine.run(30)
      expect(errorsOver(engine, 20)).toSatisfy(isGood)
    }
  })

  it('is known though one answer in ten comes ten times as slowly, for no reason of its own', () => {
    for (const profile of ['h200-llama-8b', 'h100-llama-70b-tp4']) {
      const engine = begin(profile, { outlierRatio: 0.1 })
      engine.run(40)
      const { token, firstToken } = errorsOver(engine, 40)
      // What is held up counts as in flight for as long: half of the load that the gateway sees is not there.
      expect(token).toBeLessThan(2 * TOKEN_ERROR)
      expect(firstToken).toBeLessThan(2 * FIRST_TOKEN_ERROR)
      expect(engine.twin.view().changes).toBeLessThanOrEqual(1)
    }
  })
})
