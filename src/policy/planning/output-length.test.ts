import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { type OutputHabit, OutputLengths } from './output-length.ts'

const habitOf = (tenantId: string, outputTokensMax: number | undefined = 4_000): OutputHabit => ({
  tenantId,
  kind: 'chat',
  outputTokensMax,
})

function observeMany(lengths: OutputLengths, habit: OutputHabit, samples: readonly number[]): void {
  for (const tokens of samples) lengths.observe(habit, { tokens, isCut: false })
}

describe('output length', () => {
  it('starts long for strangers and never beyond the cap', () => {
    const lengths = new OutputLengths()
    expect(lengths.predict(habitOf('new'), 4_000)).toMatchObject({ tokens: 256, tokensHigh: 1_024, source: 'prior' })
    expect(lengths.predict(habitOf('new'), 100)).toMatchObject({ tokens: 100, tokensHigh: 100, tokensMean: 100 })
  })

  it('learns a habit, and falls back to the tenant and to everybody', () => {
    const lengths = new OutputLengths()
    observeMany(lengths, habitOf('a'), Array(50).fill(100))
    expect(lengths.predict(habitOf('a'), 4_000)).toMatchObject({ source: 'habit' })
    expect(lengths.predict(habitOf('a', 16), 16)).toMatchObject({ tokens: 16, tokensHigh: 16, source: 'tenant' })
    expect(lengths.predict(habitOf('b'), 4_000)).toMatchObject({ source: 'everybody' })
  })

  it('keeps the habits of kinds apart', () => {
    const kinds = ['chat', 'completion', 'embedding', 'tensors', 'transit'] as const
    for (const kind of kinds) {
      const lengths = new OutputLengths()
      observeMany(lengths, { ...habitOf('a'), kind }, Array(50).fill(100))
      const sources = kinds.map((other) => lengths.predict({ ...habitOf('a'), kind: other }, 4_000).source)
      expect(sources.filter((source) => source === 'habit')).toHaveLength(1)
      expect(sources[kinds.indexOf(kind)]).toBe('habit')
    }
  })

  it('knows that the mean of a long tail lies above its median', () => {
    const lengths = new OutputLengths()
    observeMany(
      lengths,
      habitOf('a'),
      Array.from({ length: 100 }, (_, i) => (i % 10 === 0 ? 1_000 : 100)),
    )
    expect(lengths.predict(habitOf('a'), 4_000)).toMatchObject({ tokens: 99, tokensMean: 190 })
  })

  it('is more cautious with strangers than with those it knows', () => {
    const lengths = new OutputLengths()
    const samples = Array.from({ length: 200 }, (_, i) => 1 + ((i * 37) % 200) * 5)
    observeMany(lengths, habitOf('a'), samples)
    const known = lengths.predict(habitOf('a'), 4_000)
    const stranger = lengths.predict(habitOf('b'), 4_000)
    expect(stranger.tokens).toBeGreaterThan(known.tokens)
    expect(stranger.tokensHigh).toBeGreaterThanOrEqual(known.tokensHigh)
  })

  it('is not fooled by answers that its own cap cut short', () => {
    const rng = Rng.stream(1, 'lengths')
    const lengths = new OutputLengths()
    const draw = (): number => Math.floor(50 + 950 * rng.next())
    for (let i = 0; i < 200; i++) lengths.observe(habitOf('a'), { tokens: draw(), isCut: false })
    const before = lengths.predict(habitOf('a'), 4_000)
    for (let i = 0; i < 400; i++) {
      const tokens = draw()
      lengths.observe(habitOf('a'), { tokens: Math.min(384, tokens), isCut: tokens > 384 })
    }
    const after = lengths.predict(habitOf('a'), 4_000)
    expect(after.tokens).toBeGreaterThan(before.tokens * 0.8)
    expect(after.tokensHigh).toBeGreaterThan(600)
  })

  it('keeps a bounded number of sketches, the recent ones', () => {
    const lengths = new OutputLengths({ sketchesMax: 64, samplesMin: 1 })
    for (let i = 0; i < 1_000; i++) lengths.observe(habitOf(`tenant-${i}`), { tokens: i, isCut: false })
    expect(lengths.sketchCount).toBe(64)
    expect(lengths.predict(habitOf('tenant-999'), 4_000).source).toBe('habit')
    expect(lengths.predict(habitOf('tenant-0'), 4_000).source).toBe('everybody')
  })
})
