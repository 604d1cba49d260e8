import { describe, expect, it } from 'vitest'
import { englishTokens, type FramedAnswer, FramedEngine } from '../support/framed-engine.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

/** However an engine cuts its answers into frames, the platform learns the same pace: that of the tokens. */

const TOKEN_US = 10_000
const ENGLISH = englishTokens(120)
const SIZES = [1, 4, 8, 32]

interface Learned {
  /** What the pool believes of its tokens after some answers. */
  readonly tokenUs: number
  /** Mean of the inter-token metric in the last answer. */
  readonly gapUs: number
  readonly outputTokens: number
}

async function learn(answer: Omit<FramedAnswer, 'tokens'> & Partial<FramedAnswer>, count = 40): Promise<Learned> {
  const whole = { tokens: ENGLISH, tokenUs: TOKEN_US, ...answer }
  const world = await VirtualWorld.of((clock) => new FramedEngine(clock, whole))
  const pool = [...world.platform.policies.poolsById.values()][0]!
  let last: Learned | undefined
  for (let i = 0; i < count; i++) {
    const { done } = world.serve({ isStreamed: true, outputTokensMax: 400 })
    await world.run()
    const settled = await done
    expect(settled).toMatchObject({ outcome: 'completed' })
    const { gaps, usage } = settled
    const gapCount = gaps!.counts.reduce((sum, inBucket) => sum + inBucket, 0)
    const gapUs = gaps!.sumUs / gapCount
    last = { tokenUs: pool.speed.tokenUs(80), gapUs, outputTokens: usage.outputTokens }
  }
  return last!
}

const within5Percent = (value: number, of: number): void => {
  expect(value).toBeGreaterThan(of * 0.95)
  expect(value).toBeLessThan(of * 1.05)
}

describe('the learned pace is the same', () => {
  it.each(
    SIZES.flatMap((frameTokens) =>
      (['final', 'running', 'none'] as const).flatMap((usage) =>
        (['content', 'reasoning_content', 'tool_calls'] as const).map((field) => ({ frameTokens, usage, field })),
      ),
    ),
  )('frames of $frameTokens in $field, usage: $usage', async (answer) => {
    const alone = await learn({ frameTokens: 1, usage: 'final' })
    const seen = await learn(answer)
    within5Percent(seen.tokenUs, alone.tokenUs)
    within5Percent(seen.gapUs, TOKEN_US)
  })

  it.each(SIZES)('frames of %i from a proxy that gathers the first tokens too', async (frameTokens) => {
    const alone = await learn({ frameTokens: 1 })
    within5Percent((await learn({ frameTokens, isFirstFull: true })).tokenUs, alone.tokenUs)
  })

  it.each(SIZES)('frames of %i in a burst after a stall', async (frameTokens) => {
    const alone = await learn({ frameTokens: 1 })
    const stall = { fromUs: 300_000, toUs: 800_000 }
    within5Percent((await learn({ frameTokens, stall })).tokenUs, alone.tokenUs)
  })

  it.each([
    ['short tokens', ENGLISH.map((_, i) => (i % 2 === 0 ? 'a' : ' b'))],
    ['one word a token, as words go', ENGLISH.map((_, i) => 'abcdefghijkl'.slice(0, 3 + (i % 9)) + ' ')],
    ['Chinese', ENGLISH.map((_, i) => (i % 2 === 0 ? '水坝' : '的'))],
  ])('a tokenizer unlike ours: %s', async (_, tokens) => {
    const alone = await learn({ frameTokens: 1, tokens })
    const seen = await learn({ frameTokens: 8, tokens })
    within5Percent(seen.tokenUs, alone.tokenUs)
    within5Percent(seen.gapUs, TOKEN_US)
  })
})

describe('a count that is wrong', () => {
  it.each([
    ['nothing', { tokens: 0 }],
    ['one', { tokens: 1 }],
    ['more tokens than bytes', { tokens: 399_000 }],
    ['tokens of reasoning that nobody saw, told apart', { tokens: 121 + 200, reasoningTokens: 200 }],
  ])('%s does not change the pace', async (_, usage) => {
    const alone = await learn({ frameTokens: 1, usage: 'final' })
    within5Percent((await learn({ frameTokens: 8, usage })).tokenUs, alone.tokenUs)
  })
})
