import { describe, expect, it } from 'vitest'
import { Engine } from './engine.ts'
import type { EngineEvent } from './engine-event.ts'
import type { GpuProfile } from './gpu-profile.ts'
import { findGpuProfile } from './gpu-profiles.ts'
import { acceptedTokens, constantAcceptance, type Speculation } from './speculation.ts'
import { findSpeculation, speculationNames } from './speculation-profiles.ts'

const { coefficients } = findGpuProfile('h100-llama-8b') as GpuProfile
const limits = { sequencesMax: 64, tokenBudget: 2_048, blockCount: 10_000, blockTokens: 16 }
const speculation: Speculation = {
  draftTokens: 4,
  acceptance: constantAcceptance(4, 0.7),
  draftUsPerToken: 300,
  draftUsPerSequenceToken: 0.5,
}

function run(options: { speculation?: Speculation; seed?: number }): { events: EngineEvent[]; engine: Engine } {
  const engine = new Engine({ coefficients, limits, ...options })
  for (let i = 0; i < 40; i++) engine.submit(0, { id: `${i}`, promptTokens: 200, outputTokens: 300 })
  const events: EngineEvent[] = []
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) events.push(...engine.advance(at))
  return { events, engine }
}

describe('measured drafters', () => {
  it('bring as many tokens a step as was measured', () => {
    const tokensPerStep = (name: string): number =>
      1 + (findSpeculation(name, coefficients)?.acceptance.reduce((sum, chance) => sum + chance, 0) as number)
    expect(speculationNames().map((name) => tokensPerStep(name).toFixed(2))).toEqual(['2.46', '3.53', '2.96'])
    expect(findSpeculation('crystal-ball', coefficients)).toBeUndefined()
  })

  it('are worth it for few sequences and cost something', () => {
    for (const name of speculationNames()) {
      const drafted = run({ speculation: findSpeculation(name, coefficients) as Speculation })
      const lastAt = (events: readonly EngineEvent[]): number => events.at(-1)?.at as number
      expect(lastAt(drafted.events)).toBeLessThan(lastAt(run({}).events))
    }
  })
})

describe('speculation', () => {
  it('accepts as often as its profile says, position by position', () => {
    const counts = [0, 0, 0, 0, 0]
    for (let ordinal = 0; ordinal < 200; ordinal++) {
      for (let generatedTokens = 0; generatedTokens < 500; generatedTokens++) {
        counts[acceptedTokens(speculation, 1, { ordinal, generatedTokens })]!++
      }
    }
    const reaching = (position: number): number => counts.slice(position).reduce((a, b) => a + b, 0) / 100_000
    for (let i = 1; i <= 4; i++) expect(reaching(i)).toBeCloseTo(0.7 ** i, 2)
  })

  it('brings the same tokens in fewer steps, and counts as vLLM does', () => {
    const plain = run({})
    const drafted = run({ speculation, seed: 5 })
    const view = drafted.engine.view(1e12)
    expect(view.generationTokens).toBe(plain.engine.view(1e12).generationTokens)
    expect(view.steps).toBeLessThan(0.5 * plain.engine.view(1e12).steps)
    const counters = view.speculation as NonNullable<typeof view.speculation>
    expect(counters.draftTokens).toBe(4 * counters.drafts)
    expect(counters.acceptedTokens).toBe(counters.acceptedByPosition.reduce((a, b) => a + b, 0))
    expect(counters.acceptedTokens / counters.drafts).toBeCloseTo(0.7 + 0.49 + 0.343 + 0.2401, 1)
    expect(view.blocksFree).toBe(10_000)
  })

  it('repeats itself for a seed and differs for another (L9)', () => {
    expect(run({ speculation, seed: 5 }).events).toEqual(run({ speculation, seed: 5 }).events)
    expect(run({ speculation, seed: 5 }).events).not.toEqual(run({ speculation, seed: 6 }).events)
  })

  it('refuses a profile that makes no sense', () => {
    for (const acceptance of [[0.5], [0.5, 0.6], [1.1, 1], [0.5, -0.1]]) {
      const bad = { ...speculation, draftTokens: 2, acceptance }
      expect(() => new Engine({ coefficients, limits, speculation: bad })).toThrow('acceptance')
    }
  })
})
