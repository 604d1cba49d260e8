import { describe, expect, it } from 'vitest'
import { englishTokens, type FramedAnswer, FramedEngine } from '../support/framed-engine.ts'
import { MODEL } from '../support/start-platform.ts'
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

async function learn(
  answer: Omit<FramedAnswer, 'tokens'> & Partial<FramedAnswer>,
  { count = 40, outputTokensMax = 400 } = {},
): Promise<Learned> {
  const whole = { tokens: ENGLISH, tokenUs: TOKEN_US, ...answer }
  const world = await VirtualWorld.of((clock) => new FramedEngine(clock, whole))
  const pool = [...world.platform.policies.poolsById.values()][0]!
  let last: Learned | undefined
  for (let i = 0; i < count; i++) {
    const { done } = world.serve({ isStreamed: true, outputTokensMax })
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

/** What is learned of frames of one token each. Worlds are virtual: it is the same every time, and made once. */
const learned: Partial<Record<'final' | 'untold', Promise<Learned>>> = {}
const learnAlone = (usage?: 'final'): Promise<Learned> =>
  (learned[usage ?? 'untold'] ??= learn({ frameTokens: 1, ...(usage !== undefined && { usage }) }))

const offBy = (value: number, of: number): number => Math.abs(value / of - 1)

describe('the learned pace is the same', () => {
  it.each(
    SIZES.flatMap((frameTokens) =>
      (['final', 'running', 'none'] as const).flatMap((usage) =>
        (['content', 'reasoning_content', 'tool_calls'] as const).map((field) => ({ frameTokens, usage, field })),
      ),
    ),
  )('frames of $frameTokens in $field, usage: $usage', async (answer) => {
    const alone = await learnAlone('final')
    const seen = await learn(answer)
    expect(offBy(seen.tokenUs, alone.tokenUs)).toBeLessThan(0.05)
    expect(offBy(seen.gapUs, TOKEN_US)).toBeLessThan(0.05)
  })

  it.each(SIZES)('frames of %i from a proxy that gathers the first tokens too', async (frameTokens) => {
    const alone = await learnAlone()
    expect(offBy((await learn({ frameTokens, isFirstFull: true })).tokenUs, alone.tokenUs)).toBeLessThan(0.05)
  })

  it.each(SIZES)('frames of %i in a burst after a stall', async (frameTokens) => {
    const alone = await learnAlone()
    const stall = { fromUs: 300_000, toUs: 800_000 }
    expect(offBy((await learn({ frameTokens, stall })).tokenUs, alone.tokenUs)).toBeLessThan(0.05)
  })

  it.each([
    ['short tokens', ENGLISH.map((_, i) => (i % 2 === 0 ? 'a' : ' b'))],
    ['one word a token, as words go', ENGLISH.map((_, i) => `${'abcdefghijkl'.slice(0, 3 + (i % 9))} `)],
    ['Chinese', ENGLISH.map((_, i) => (i % 2 === 0 ? '水坝' : '的'))],
  ])('a tokenizer unlike ours: %s', async (_, tokens) => {
    const alone = await learn({ frameTokens: 1, tokens })
    const seen = await learn({ frameTokens: 8, tokens })
    expect(offBy(seen.tokenUs, alone.tokenUs)).toBeLessThan(0.05)
    expect(offBy(seen.gapUs, TOKEN_US)).toBeLessThan(0.05)
  })
})

describe('the twin of an engine behind a URL', () => {
  /** What it believes after some answers. */
  async function twinOf(answer: Partial<FramedAnswer>): Promise<number> {
    const whole = { tokens: ENGLISH, tokenUs: TOKEN_US, frameTokens: 1, ...answer }
    const backend = { kind: 'http-openai', profile: 'h100-llama-8b' }
    const pools = [{ model: MODEL, backend, replicas: ['http://127.0.0.1:9/v1'] }]
    const world = await VirtualWorld.of((clock) => new FramedEngine(clock, whole), { tree: { pools } })
    const { policies, pools: made } = world.platform
    const replica = made[0]!.replicas[0]!
    for (let i = 0; i < 60; i++) {
      const { done } = world.serve({ isStreamed: true, outputTokensMax: 400 })
      await world.run()
      expect(await done).toMatchObject({ outcome: 'completed' })
    }
    return policies.poolsById.get(replica.poolId)!.engineOf(replica).alone.tokenUs(80)
  }
  let plain: Promise<number> | undefined

  it.each(
    [4, 8, 32].flatMap((frameTokens) =>
      (['final', 'running', 'none'] as const).map((usage) => ({ frameTokens, usage })),
    ),
  )('learns the same from frames of $frameTokens, usage: $usage', async (answer) => {
    plain ??= twinOf({})
    expect(offBy(await twinOf(answer), await plain)).toBeLessThan(0.05)
  })

  it('learns the same from tokens unlike ours', async () => {
    const tokens = ENGLISH.map((_, i) => (i % 2 === 0 ? 'a' : ' b'))
    expect(offBy(await twinOf({ frameTokens: 8, tokens }), await twinOf({ tokens }))).toBeLessThan(0.05)
    expect(offBy(await twinOf({ tokens }), TOKEN_US)).toBeLessThan(0.1)
  })
})

describe('a count that is wrong', () => {
  it('goes no further than the bound, and the pace is that of the whole answer', async () => {
    const tokens = ENGLISH.map(() => ' overflow')
    const alone = await learnAlone()
    const seen = await learn({ frameTokens: 8, usage: 'none', tokens }, { outputTokensMax: tokens.length })
    expect(seen.outputTokens).toBe(tokens.length)
    expect(offBy(seen.tokenUs, alone.tokenUs)).toBeLessThan(0.05)
  })

  it.each([
    ['nothing', { tokens: 0 }],
    ['one', { tokens: 1 }],
    ['more tokens than bytes', { tokens: 399_000 }],
    ['tokens of reasoning that nobody saw, told apart', { tokens: 121 + 200, reasoningTokens: 200 }],
  ])('%s does not change the pace', async (_, usage) => {
    const alone = await learnAlone('final')
    expect(offBy((await learn({ frameTokens: 8, usage })).tokenUs, alone.tokenUs)).toBeLessThan(0.05)
  })
})

describe('while an answer is decoded', () => {
  /** Charges that fairness hears of, and the bill of a client that leaves after 61 tokens. */
  async function cutShort(frameTokens: number, usage: 'final' | 'running') {
    const answer = { tokens: ENGLISH, tokenUs: TOKEN_US, frameTokens, usage }
    const short = Array.from({ length: 30 }, () => ({ ...answer, tokens: ENGLISH.slice(0, 20) }))
    const world = await VirtualWorld.of((clock) => new FramedEngine(clock, ...short, answer))
    const { turnstile } = world.platform
    const charged: number[] = []
    const progress = turnstile.progress.bind(turnstile)
    turnstile.progress = (lease, outputTokens) => {
      charged.push(outputTokens)
      progress(lease, outputTokens)
    }
    const asked = { isStreamed: true, outputTokensMax: 400 }
    for (const _ of short) {
      world.serve(asked)
      await world.run()
    }
    charged.length = 0
    const served = world.serve(asked)
    world.after(50_000 + 60 * TOKEN_US + 1, () => served.cancellation.cancel('client-gone'))
    await world.run()
    expect(world.unrest()).toEqual([])
    return { settled: served.settled!, charged }
  }

  it.each(SIZES.flatMap((size) => [[size, 'final'] as const, [size, 'running'] as const]))(
    'frames of %i, usage %s: a client that leaves pays for the tokens that it got',
    async (frameTokens, usage) => {
      const { settled } = await cutShort(frameTokens, usage)
      const sent = 1 + Math.floor(60 / frameTokens) * frameTokens
      expect(settled.outcome).toBe('cancelled')
      // By the length of its text a part of an answer is known less well than many answers: words differ.
      expect(Math.abs(settled.usage.outputTokens - sent)).toBeLessThanOrEqual(usage === 'running' ? 0 : sent * 0.1)
    },
  )

  it('fairness is charged with tokens beyond the predicted length, not with frames', async () => {
    const { charged } = await cutShort(8, 'final')
    expect(charged.at(-1)).toBeGreaterThan(50)
  })
})
