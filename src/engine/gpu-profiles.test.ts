import { describe, expect, it } from 'vitest'
import { parseProfile, profileJsonOf } from './calibration/profile-json.ts'
import { Engine } from './engine.ts'
import { ASSUMED_SERVING, type GpuProfile, kvBlockCount, limitsOf, servingCoefficients } from './gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from './gpu-profiles.ts'
import { stepUs } from './step-time.ts'

const profile = (name: string): GpuProfile => findGpuProfile(name) as GpuProfile

const decode = { decodeCount: 32, decodeTokens: 32, contextSum: 32_000, contextMax: 1_000 }
const nothing = { prefillTokens: 0, chunkPairs: 0, contextPairs: 0 }
const decodeUs = (name: string): number => stepUs(profile(name).coefficients, { ...decode, ...nothing })

describe('the catalogue', () => {
  it('has three GPUs, three sizes, fp8 where it was measured, and the reference', () => {
    for (const gpu of ['a100', 'h100', 'h200']) {
      for (const model of ['llama-1b', 'llama-8b', 'llama-70b-tp4'])
        expect(findGpuProfile(`${gpu}-${model}`)).toBeDefined()
    }
    expect(findGpuProfile('h100-llama-70b-tp4-fp8')).toBeDefined()
    expect(findGpuProfile('reference-a100')).toBeDefined()
    expect(findGpuProfile('a100-llama-8b-fp8')).toBeUndefined()
    expect(new Set(gpuProfileNames()).size).toBe(gpuProfileNames().length)
  })

  it('names each profile as it is found', () => {
    for (const name of [...gpuProfileNames(), 'h200-llama-1b+mig-2g', 'a100-llama-8b+shared-2']) {
      expect(profile(name).name).toBe(name)
    }
  })

  it('leaves room for keys and values in every profile, and an engine runs on each', () => {
    for (const name of gpuProfileNames()) {
      const limits = limitsOf(profile(name))
      expect(limits.blockCount).toBeGreaterThan(1_000)
      const engine = new Engine({ coefficients: servingCoefficients(profile(name)), limits })
      engine.submit(0, { id: 'a', promptTokens: 1_000, outputTokens: 100 })
      engine.advance(600_000_000)
      expect(engine.view(600_000_000)).toMatchObject({ running: 0, finished: 1 })
    }
  })

  it('has host time in every profile whose steps are put together from kernels', () => {
    for (const name of gpuProfileNames()) {
      const coefficients = servingCoefficients(profile(name))
      if (coefficients.kind === 'reference') continue
      expect(coefficients.hostUs, name).toBeGreaterThanOrEqual(250)
    }
  })

  it('computes blocks from what weights leave: an 8B on 80 GB has room for 450,000 tokens', () => {
    expect(16 * kvBlockCount(profile('a100-llama-8b').memory)).toBeGreaterThan(430_000)
    expect(16 * kvBlockCount(profile('a100-llama-8b').memory)).toBeLessThan(470_000)
    expect(16 * kvBlockCount(profile('reference-a100').memory)).toBe(16 * Math.floor(32e9 / (131_072 * 16)))
  })

  it('orders GPUs as bandwidth does', () => {
    for (const model of ['llama-1b', 'llama-8b']) {
      expect(decodeUs(`a100-${model}`)).toBeGreaterThan(decodeUs(`h100-${model}`))
    }
    expect(decodeUs('h100-llama-8b')).toBeGreaterThan(decodeUs('h100-llama-8b-fp8'))
  })
})

describe('a share of a GPU', () => {
  it('by MIG has less bandwidth, compute, memory and price', () => {
    const whole = profile('h200-llama-1b')
    const half = profile('h200-llama-1b+mig-3g')
    expect(half.coefficients).toMatchObject({ weightsUs: 2 * 1_063, computeUsPerToken: (3.871 * 7) / 3 })
    expect(half.usdPerHour).toBeCloseTo((whole.usdPerHour * 3) / 7)
    expect(kvBlockCount(half.memory)).toBeLessThan(kvBlockCount(whole.memory) / 2)
  })

  it('by time slicing takes turns with busy neighbours, and pays for switching', () => {
    expect(decodeUs('a100-llama-1b+shared-2') / decodeUs('a100-llama-1b')).toBeCloseTo(2 * 1.3, 9)
    expect(decodeUs('a100-llama-1b+shared-1')).toBe(decodeUs('a100-llama-1b'))
  })

  it('keeps what a serving engine adds', () => {
    const whole = profile('h200-llama-8b').serving as Required<NonNullable<GpuProfile['serving']>>
    expect(profile('h200-llama-8b+shared-2').serving?.prefillFloorUs).toBeCloseTo(2.6 * whole.prefillFloorUs)
    expect(profile('h200-llama-8b+mig-7g').serving).toEqual(whole)
    const half = profile('h200-llama-8b+mig-3g').serving
    expect(half?.kvReadUsPerToken).toBeCloseTo(2 * whole.kvReadUsPerToken, 9)
    expect(half?.decodeUsPerSequence).toBeCloseTo((whole.decodeUsPerSequence * 7) / 3, 9)
    expect(half).toMatchObject({ hostUs: whole.hostUs, prefillFloorUs: whole.prefillFloorUs })
  })

  it('of many GPUs, of an unknown kind or too small for the weights is none', () => {
    expect(findGpuProfile('h100-llama-70b-tp4+mig-1g')).toBeUndefined()
    expect(findGpuProfile('h200-llama-1b+mig-9g')).toBeUndefined()
    expect(findGpuProfile('h200-llama-1b+shared-0')).toBeUndefined()
    expect(findGpuProfile('nothing+mig-1g')).toBeUndefined()
    expect(kvBlockCount(profile('a100-llama-8b+mig-1g').memory)).toBe(0)
  })
})

describe('a profile in a file', () => {
  const { coefficients } = profile('h200-llama-8b')
  const errors = { count: 89, medianError: 0, p90Error: 0, maxError: 0, bias: 0 }
  const fit = { model: 'llama-8b', coefficients, errors, byKind: {}, crossValidated: errors }
  const json = JSON.stringify(
    profileJsonOf(fit as Parameters<typeof profileJsonOf>[0], { name: 'mine', like: 'h200-llama-8b' }),
  )

  it('comes back as it was written, with the memory and price of what it is like', () => {
    const read = parseProfile(json)
    expect(read).toMatchObject({ name: 'mine', coefficients, usdPerHour: profile('h200-llama-8b').usdPerHour })
    // What the engine of the other profile adds stays there; the host's time is the assumed one.
    expect(read).toMatchObject({ serving: ASSUMED_SERVING })
    expect(Object.keys((read as GpuProfile).serving ?? {})).toEqual(['hostUs'])
  })

  it('is refused with the reason when it is not one', () => {
    const cases: [string, RegExp][] = [
      ['{', /expected JSON/],
      ['null', /expected an object/],
      ['{}', /"name" and "like"/],
      ['{"name":"a","like":"b"}', /names no profile: b/],
      ['{"name":"a","like":"h200-llama-8b"}', /object "coefficients"/],
      [json.replace('"weightsUs"', '"weights"'), /lacks weightsUs/],
      [json.replace('4538.7', '-1'), /weightsUs is not a number/],
    ]
    for (const [text, because] of cases) {
      const answer = parseProfile(text)
      expect('kind' in answer && answer.because).toMatch(because)
    }
  })
})
