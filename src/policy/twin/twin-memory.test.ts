import { describe, expect, it } from 'vitest'
import type { EngineTwin } from './engine-twin.ts'
import { readTwinMemory, type TwinMemory } from './twin-memory.ts'
import type { TwinPrior } from './twin-prior.ts'
import { Twins } from './twins.ts'

const SECOND_US = 1_000_000
const CAUTIOUS: TwinPrior = {
  name: 'cautious',
  decode: [10_000, 15, 0.08, 50],
  read: [10_000, 45, 50, 0.004],
  tokenBudget: 2_048,
}
const MEMORY: TwinMemory = {
  prior: 'h100-llama-8b, from before the restart',
  decode: [6_000, 4, 0.04, 14],
  read: [6_000, 12, 17, 0.001],
  tokenBudget: 2_048,
  rows: 900,
  sequencesSeen: 96,
  ceiling: 162,
  kv: { tokensMax: 400_000, isTold: false },
}

const makeTwins = (): Twins => new Twins({ priors: [CAUTIOUS], prior: CAUTIOUS, sequencesMax: 256 })

/** One sequence of 1,000 tokens decodes, so many microseconds a token, for so many stretches of a second. */
function decode(twin: EngineTwin, tokenUs: number, stretches: number, from = 0): number {
  const load = { ...NO_LOAD, sequences: 1, contextTokens: 1_000 }
  let now = from
  twin.note(now, load)
  const stretch = twin.openStretch(now, 0)
  for (let tokens = 0, i = 0; i < stretches; i++) {
    now += SECOND_US
    tokens += Math.round(SECOND_US / tokenUs)
    twin.closeStretch(now, stretch, tokens)
  }
  return now
}

const NO_LOAD = {
  sequences: 0,
  kvTokens: 0,
  contextTokens: 0,
  prefillMilliPerToken: 0,
  prefillTokens: 0,
  readTokens: 0,
  engineUs: 0,
}

describe('what was known before a restart', () => {
  it('is where a twin begins: its steps, its range, its ceiling and its memory', () => {
    const twins = makeTwins()
    expect(twins.remember(0, 'r', MEMORY)).toBe(true)
    const { twin, ceiling, kv } = twins.of('r')
    expect(twin.meanTokenUs(64, 64_000, 0)).toBeCloseTo(6_000 + 256 + 2_560)
    expect(twin.view()).toMatchObject({ prior: 'h100-llama-8b, from before the restart', rows: 0, isTrusted: false })
    expect([twin.isSeen(120), twin.isSeen(121)]).toEqual([true, false])
    expect([ceiling.sequencesMax, ceiling.because]).toEqual([162, 'from before the restart'])
    expect(kv.capacity).toEqual({ tokensMax: 400_000, isTold: false })
    expect(twins.kvTokensMax).toBe(Number.POSITIVE_INFINITY)
  })

  it('is not believed blindly: an engine that has become three times as slow is found out', () => {
    const twins = makeTwins()
    twins.remember(0, 'r', MEMORY)
    const { twin } = twins.of('r')
    decode(twin, 18_000, 40)
    expect(Math.abs(twin.meanTokenUs(1, 1_000, 0) / 18_000 - 1)).toBeLessThan(0.1)
  })

  it('does not replace what was learned since', () => {
    const twins = makeTwins()
    const { twin } = twins.of('r')
    decode(twin, 20_000, 40)
    const before = twin.view()
    expect(twins.remember(50 * SECOND_US, 'r', MEMORY)).toBe(false)
    expect(twin.view()).toEqual(before)
  })

  it('is worth keeping once the twin is believed, and reads back as it was', () => {
    const twins = makeTwins()
    const { twin, kv } = twins.of('r')
    expect(twins.memoryOf('r')).toBeUndefined()
    expect(twins.memoryOf('nobody')).toBeUndefined()
    decode(twin, 20_000, 60)
    kv.report(0, { kvTokensMax: 50_000 }, { held: 0, heldContextTokens: 0 })
    const memory = twins.memoryOf('r')
    expect(memory).toMatchObject({ rows: 60, kv: { tokensMax: 50_000, isTold: true } })
    expect(readTwinMemory(JSON.parse(JSON.stringify(memory)))).toEqual(memory)
    const next = makeTwins()
    next.remember(0, 'r', memory!)
    expect(next.of('r').twin.meanTokenUs(1, 1_000, 0)).toBeCloseTo(twin.meanTokenUs(1, 1_000, 0))
    expect(next.kvTokensMax).toBe(50_000)
  })

  it('may have learned that a price is nothing, and learns otherwise', () => {
    const memory = readTwinMemory({ ...MEMORY, decode: [6_000, 0, 0, 14], read: [6_000, 0, 17, 0] })
    const twins = makeTwins()
    twins.remember(0, 'r', memory!)
    const { twin } = twins.of('r')
    expect(twin.meanTokenUs(64, 0, 0)).toBeGreaterThanOrEqual(6_000)
    expect(twin.meanTokenUs(64, 0, 0)).toBeLessThan(6_100)
    decode(twin, 9_000, 60)
    expect(Math.abs(twin.meanTokenUs(1, 1_000, 0) / 9_000 - 1)).toBeLessThan(0.1)
  })

  it.each([
    undefined,
    'text',
    {},
    { ...MEMORY, decode: [1, 2, 3] },
    { ...MEMORY, read: [1, 2, 3, -1] },
    { ...MEMORY, decode: [0, 0, 0, 0] },
    { ...MEMORY, tokenBudget: 0 },
    { ...MEMORY, ceiling: '5' },
    { ...MEMORY, tokenBudget: 1e-6 },
    { ...MEMORY, decode: [1e300, 1, 1, 1] },
    { ...MEMORY, decode: [1e308, 1e308, 1, 1] },
    { ...MEMORY, decode: [1e-300, 1e-300, 0, 0] },
    { ...MEMORY, read: [1e200, 1e200, 1e200, 1e200] },
  ])('is nothing when it cannot be read: %j', (value) => expect(readTwinMemory(value)).toBeUndefined())
})
