import { describe, expect, it } from 'vitest'
import { spentUs } from '../../domain/engine-time.ts'
import { ReplicaSeen, SeenAttempt, type SeenProgress, type StepPrices } from './seen-work.ts'

const S = 1_000_000
const PRICES: StepPrices = {
  baseUs: 6_000,
  sequenceUs: 3,
  contextTokenUs: 0.04,
  promptTokenUs: 12,
  pairUs: 0,
  tokenBudget: 2_048,
  paceUs: 10_000,
}
const SIZE = { sequences: 1, promptTokens: 1_000, cachedTokens: 0, firstTokenUs: undefined }

const seen = (tokens: number, more: Partial<SeenProgress> = {}): SeenProgress => ({
  firstTokenAt: 0,
  lastTokenAt: 1,
  outputTokens: tokens,
  isOver: false,
  usage: undefined,
  ...more,
})

function replica(prices?: StepPrices): ReplicaSeen {
  const one = new ReplicaSeen(0)
  one.learn(0, prices, 0)
  return one
}

describe('what a gateway sees of an attempt', () => {
  it('is weighed by the number in flight when its tokens came: half of the base beside one other', () => {
    const here = replica(PRICES)
    const [a, b] = [new SeenAttempt(0, here, SIZE), new SeenAttempt(0, here, SIZE)]
    a.begun(0)
    b.begun(0)
    a.look(0, seen(1))
    b.look(0, seen(1))
    const time = a.look(S, seen(101))
    expect(time.decodeUs).toBeCloseTo(100 * (3_000 + 3 + 0.04 * (1_000 + 51)), 6)
    expect(time.aloneUs).toBeCloseTo(100 * (6_000 + 3 + 0.04 * (1_000 + 51)), 6)
    expect(time.prefillUs).toBe(0)
  })

  it('is weighed by the mean over the time in which the number changed', () => {
    const here = replica(PRICES)
    const a = new SeenAttempt(0, here, SIZE)
    a.begun(0)
    a.look(0, seen(1))
    const b = new SeenAttempt(S / 2, here, SIZE)
    b.begun(S / 2)
    // Alone for a half, beside another for a half: three quarters of the base.
    expect(a.look(S, seen(2)).decodeUs).toBeCloseTo(0.75 * 6_000 + 3 + 0.04 * 1_001.5, 6)
  })

  it('reads its prompt once, without what was cached', () => {
    const here = replica(PRICES)
    const a = new SeenAttempt(0, here, { ...SIZE, cachedTokens: 400 })
    expect(spentUs(a.look(1_000, seen(0, { firstTokenAt: undefined, lastTokenAt: undefined })))).toBe(0)
    a.begun(2_000)
    const time = a.look(3_000, seen(0))
    expect(time.prefillUs).toBeGreaterThan(600 * 12)
    expect(time.prefillUs).toBeLessThanOrEqual(600 * 12 + 6_000)
    expect(time.prefixSavedUs).toBe(400 * 12)
    expect(a.look(4_000, seen(0)).prefillUs).toBe(0)
  })

  it('is supposed to write at the twin’s pace while it says nothing, and is put right at its end', () => {
    const here = replica(PRICES)
    const a = new SeenAttempt(0, here, SIZE)
    a.begun(0)
    const silent = { lastTokenAt: 0 }
    const supposed = a.look(S, seen(1, silent)).decodeUs
    // A hundred tokens in a second; at its end it had made 150.
    const rest = a.look(S + 1, seen(150, { ...silent, isOver: true })).decodeUs
    expect(rest / supposed).toBeCloseTo(0.5, 2)
    expect(here.held).toBe(0)
  })

  it('shares the time in flight where no step times are known', () => {
    const here = replica()
    const [a, b] = [new SeenAttempt(0, here, SIZE), new SeenAttempt(S / 2, here, SIZE)]
    expect(spentUs(a.look(S, seen(0)))).toBe(0.75 * S)
    expect(spentUs(b.look(S, seen(0)))).toBe(0.25 * S)
    expect(here.busyUs).toBe(S)
  })

  it('counts what others have in flight there', () => {
    const here = replica()
    here.learn(0, undefined, 3)
    const a = new SeenAttempt(0, here, SIZE)
    expect(spentUs(a.look(S, seen(0)))).toBe(S / 4)
  })
})
