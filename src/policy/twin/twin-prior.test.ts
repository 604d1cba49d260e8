import { describe, expect, it } from 'vitest'
import { hiddenOptions, priorNamed } from '../../../test/support/hidden-engine.ts'
import { gpuProfileNames } from '../../engine/gpu-profiles.ts'
import { speedOfEngine } from '../../engine/pool-speed.ts'
import { readTerms } from './twin-prior.ts'

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, each, i) => sum + each * b[i]!, 0)

describe('priors', () => {
  it.each(gpuProfileNames())('of %s say what its step-time model says, at ordinary loads', (name) => {
    const { decode, read } = priorNamed(name)
    const { alone, steps } = speedOfEngine(hiddenOptions(name), 4)
    for (const coefficient of [...decode, ...read]) expect(coefficient).toBeGreaterThan(0)
    for (const sequences of [1, 16, 64, 128]) {
      const load = [sequences, 1_000 * sequences, 5 * sequences] as const
      expect(Math.abs(dot(decode, [1, ...load]) / steps!.meanTokenUs(...load) - 1)).toBeLessThan(0.35)
    }
    for (const tokens of [16, 512, 1_024, 2_048, 4_096, 8_192])
      expect(Math.abs(dot(read, readTerms(tokens, 0)) / alone.prefillUs(tokens, 0) - 1)).toBeLessThan(0.35)
  })

  it('count cached tokens as read, but not as computed', () => {
    expect(readTerms(100, 0)).toEqual([1, 100, 0, 5_000])
    expect(readTerms(2_024, 1_000)).toEqual([1, 1_024, 1_000, 2_024 ** 2 / 2 + 2_024_000])
  })
})
