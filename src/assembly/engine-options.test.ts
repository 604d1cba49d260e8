import { describe, expect, it } from 'vitest'
import { ConfigError } from '../config/config-error.ts'
import { buildConfig } from '../config/load.ts'
import { Engine } from '../engine/engine.ts'
import { gpuProfileNames } from '../engine/gpu-profiles.ts'
import { type EngineChanges, engineOptionsOf } from './engine-options.ts'

const config = buildConfig(undefined, {})
const make = (changes: EngineChanges, profile = 'h100-llama-8b') => engineOptionsOf(config, profile, changes)

/** How long one request takes an idle engine. */
function timeOf(profile: string, slowdown: number): number {
  const engine = new Engine(make({ slowdown }, profile))
  engine.submit(0, { id: 'a', promptTokens: 1_000, outputTokens: 50 })
  let endedAt = 0
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
    endedAt = engine.advance(at).at(-1)?.at ?? endedAt
  }
  return endedAt
}

describe('engine options', () => {
  it('are the profile’s and the configuration’s unless changed', () => {
    const usual = make({}).limits
    expect(usual).toMatchObject({ sequencesMax: config.engine.batchSizeMax, tokenBudget: 2_048, blockTokens: 16 })
    const changed = {
      sequencesMax: 8,
      tokenBudget: 64,
      longPrefillTokens: 16,
      blockCount: 99,
      blockTokens: 32,
      waitingMax: 7,
    }
    expect(make(changed).limits).toEqual(changed)
    // The same memory in blocks twice as large.
    expect(make({ blockTokens: 32 }).limits.blockCount).toBe(Math.floor(usual.blockCount / 2))
  })

  it('form batches as configured, unless told otherwise: BATCH_TIMEOUT_MS is the window of micro-batches', () => {
    const withBatching = (batching: typeof config.engine.batching) => ({
      ...config,
      engine: { ...config.engine, batching, batchTimeoutMs: 10 },
    })
    const windowOf = (batching: typeof config.engine.batching, changes = {}): number | undefined =>
      engineOptionsOf(withBatching(batching), 'h100-llama-8b', changes).limits.staticBatching?.windowUs
    expect(windowOf('continuous')).toBeUndefined()
    expect(windowOf('static')).toBe(0)
    expect(windowOf('micro-batch')).toBe(10_000)
    expect(windowOf('continuous', { batching: 'micro-batch' })).toBe(10_000)
    expect(windowOf('static', { batching: 'continuous' })).toBeUndefined()
  })

  it.each(gpuProfileNames())('slow %s down by the factor asked for', (profile) => {
    const ratio = timeOf(profile, 3) / timeOf(profile, 1)
    expect(ratio).toBeGreaterThan(2.99)
    expect(ratio).toBeLessThan(3.01)
  })

  it.each([
    [
      'no such profile',
      'tpu',
      {},
      /the GPU profile is "tpu", but there is no such GPU profile\. Known: .*h100-llama-8b.*\+mig-2g.*\+shared-2/,
    ],
    ['no such file', 'somewhere/mine.json', {}, /^somewhere\/mine\.json is not there\./],
    ['no such drafter', 'h100-llama-8b', { speculation: 'crystal-ball' }, /no drafter is called.*eagle3/],
    [
      'a budget below the batch and its drafts',
      'h100-llama-8b',
      { speculation: 'ngram', sequencesMax: 400 },
      /400 .* 6 tokens each need .* 2400/,
    ],
    ['a budget below the batch', 'h100-llama-8b', { sequencesMax: 512, tokenBudget: 256 }, /512 sequences.*256/],
  ])('say what cannot be: %s', (_, profile, changes, message) => {
    expect(() => make(changes, profile)).toThrow(ConfigError)
    try {
      make(changes, profile)
    } catch (error) {
      expect((error as ConfigError).problems[0]).toMatch(message)
    }
  })
})
