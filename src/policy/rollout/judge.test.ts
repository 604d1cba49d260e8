import { describe, expect, it } from 'vitest'
import { type CanaryTraits, NO_DIFFERENCE, runCanary, type UnequalLoads } from '../../../test/support/canary-world.ts'
import { Rng } from '../../base/rng.ts'
import { Capital } from './capital.ts'
import { type AttemptFact, Judge } from './judge.ts'

/** The quick version of bench/experiments/judge.ts: the same worlds, fewer of them. */
function check(traits: Partial<CanaryTraits>, seeds: number, attemptsMax = 60_000) {
  return Array.from({ length: seeds }, (_, seed) =>
    runCanary({ seed: seed + 1, traits: { ...NO_DIFFERENCE, ...traits }, attemptsMax }),
  )
}

describe('the judge', () => {
  it('rolls back a canary that always fails within 50 failed attempts', () => {
    for (const story of check({ failRatio: 1 }, 20)) {
      expect(story.end).toBe('rolled-back')
      expect(story.canaryFailures).toBeLessThanOrEqual(50)
    }
  })

  it('rolls back one that is 30 % slower within 2,000 of its requests', () => {
    for (const story of check({ slower: 1.3 }, 20)) {
      expect(story.end).toBe('rolled-back')
      expect(story.canaryAttempts).toBeLessThanOrEqual(2_000)
    }
  })

  it.each([
    ['fails 5 % more often', { failRatio: 0.05 }],
    ['refuses 5 % more often', { refuseRatio: 0.05 }],
  ])('rolls back one that %s', (_, traits) => {
    for (const story of check(traits, 10)) expect(story.end).toBe('rolled-back')
  })

  it('promotes one that is alike, and one that is faster', () => {
    for (const traits of [{}, { slower: 0.8 }]) {
      const ends = check(traits, 10).map(({ end }) => end)
      expect(ends.filter((end) => end === 'promoted').length).toBeGreaterThanOrEqual(9)
    }
  })

  it('rolls back hardly ever when there is no difference, however unequal the tenants', () => {
    const rolledBack = check({}, 40, 30_000).filter(({ end }) => end === 'rolled-back')
    expect(rolledBack.length).toBeLessThanOrEqual(1)
  })

  describe('with stable in three pools of different load', { timeout: 60_000 }, () => {
    /** An almost idle canary beside them, which is how every rollout begins; and one that is busier than they are. */
    const IDLE = { stable: [3, 12, 40], canary: 1 }
    const BUSY = { stable: [1, 3, 12], canary: 40 }
    const held = (traits: Partial<CanaryTraits>, loads: UnequalLoads, seeds: number, attemptsMax = 30_000) =>
      Array.from({ length: seeds }, (_, seed) =>
        runCanary({
          seed: seed + 1,
          traits: { ...NO_DIFFERENCE, ...traits },
          attemptsMax,
          loads,
          judge: { pairsMin: Number.POSITIVE_INFINITY },
        }),
      )

    it.each([
      ['predicted, an idle canary', { ...IDLE, isPredicted: true }],
      ['predicted, a busy canary', { ...BUSY, isPredicted: true }],
      ['unknown, an idle canary', { ...IDLE, isPredicted: false }],
      ['unknown, a busy canary', { ...BUSY, isPredicted: false }],
    ])('load %s: rolls back one that fails every second attempt within 50 of them', (_, loads) => {
      for (const story of held({ failRatio: 0.5 }, loads, 10)) {
        expect(story.end).toBe('rolled-back')
        expect(story.canaryFailures).toBeLessThanOrEqual(50)
        expect(story.verdict.because).toBe('worse: more of its attempts fail')
      }
    })

    it.each([
      ['predicted, an idle canary', { ...IDLE, isPredicted: true }],
      ['predicted, a busy canary', { ...BUSY, isPredicted: true }],
      ['predicted 2 % too low for each doubling', { ...BUSY, isPredicted: true, errorPerClass: 0.02 }],
      ['predicted 2 % too high for each doubling', { ...IDLE, isPredicted: true, errorPerClass: -0.02 }],
      ['unknown, an idle canary', { ...IDLE, isPredicted: false }],
      ['unknown, a busy canary', { ...BUSY, isPredicted: false }],
    ])('load %s: does not roll back one that is alike', (_, loads) => {
      const rolledBack = held({}, loads, 8).filter(({ end }) => end === 'rolled-back')
      expect(rolledBack.map(({ verdict }) => verdict.because)).toEqual([])
    })

    it.each([
      ['predicted, an idle canary', { ...IDLE, isPredicted: true }],
      ['predicted, a busy canary', { ...BUSY, isPredicted: true }],
      ['unknown, a canary as busy as one of the pools', { stable: [3, 12, 40], canary: 12, isPredicted: false }],
    ])('load %s: rolls back one that is 30 % slower within 2,000 of its attempts', (_, loads) => {
      for (const story of held({ slower: 1.3 }, loads, 10, 60_000)) {
        expect(story.end).toBe('rolled-back')
        expect(story.canaryAttempts).toBeLessThanOrEqual(2_000)
      }
    })

    it('load unknown: an idle canary that is slower than a full stable release is rolled back', () => {
      for (const story of held({ slower: 3 }, { ...IDLE, isPredicted: false }, 10))
        expect(story.end).toBe('rolled-back')
    })
  })

  it('says its numbers', () => {
    const judge = new Judge()
    const fact = {
      tenantId: 'a',
      promptTokens: 100,
      isFailed: false,
      isRefused: false,
      ttftRatio: 1,
      interTokenRatio: 1,
      costRatio: 1,
    }
    for (let i = 0; i < 60; i++) {
      judge.observeStable(fact)
      judge.observeCanary({ ...fact, ttftRatio: 1.4 })
    }
    const verdict = judge.verdict()
    expect(verdict).toMatchObject({ kind: 'roll-back', because: 'worse: its first token comes later' })
    const ttft = verdict.evidence.find(({ metric }) => metric === 'ttft')
    expect(ttft?.pairs).toBeGreaterThan(50)
    expect(ttft?.won).toBeGreaterThan(2_800)
    expect(ttft?.bound).toBe(2_800)
  })

  it('rolls back for the holdout set alone', () => {
    const judge = new Judge()
    for (let i = 0; i < 40; i++) judge.observeHoldout(i % 3 === 0 ? 1 : 0, 1)
    expect(judge.verdict()).toMatchObject({ kind: 'roll-back', because: 'worse: it scores less on the holdout set' })
  })

  it('does not blame the canary for an outage of everything', () => {
    const judge = new Judge()
    const fact = {
      tenantId: 'a',
      promptTokens: 100,
      isFailed: true,
      isRefused: false,
      ttftRatio: undefined,
      interTokenRatio: undefined,
      costRatio: undefined,
    }
    for (let i = 0; i < 300; i++) {
      judge.observeStable(fact)
      judge.observeCanary(fact)
    }
    expect(judge.verdict().kind).toBe('wait')
  })
})

describe('capital', () => {
  it('finds fifteen of fifteen at the design’s bound', () => {
    const capital = new Capital()
    for (let i = 0; i < 15; i++) capital.observe(1)
    expect(capital.value).toBeGreaterThan(2_800)
  })
})

describe('judges of several gateways', () => {
  const fact = (over: Partial<AttemptFact>): AttemptFact => ({
    tenantId: 'a',
    promptTokens: 100,
    isFailed: false,
    isRefused: false,
    ttftRatio: undefined,
    interTokenRatio: undefined,
    costRatio: undefined,
    ...over,
  })
  /** Attempts of a canary that fails more often, dealt to gateways in turn, pair by pair. */
  function deal(gatewayCount: number, seed: number): readonly Judge[] {
    const rng = Rng.stream(seed, 'several')
    const judges = Array.from({ length: gatewayCount }, () => new Judge())
    for (let i = 0; i < 120; i++) {
      const judge = judges[i % gatewayCount] as Judge
      judge.observeStable(fact({ isFailed: rng.next() < 0.02 }))
      judge.observeCanary(fact({ isFailed: rng.next() < 0.2 }))
    }
    return judges
  }
  const told = (judge: Judge) => ({ tally: judge.tally(), isSameStep: true })
  const wonBy = (judge: Judge) => judge.verdict().evidence.map(({ metric, pairs }) => `${metric} ${pairs}`)

  it.each([1, 2, 3])('have together what one has who has seen every pair (seed %i)', (seed) => {
    const rng = Rng.stream(seed, 'bets')
    const bets = Array.from({ length: 200 }, () => 2 * rng.next() - 0.9)
    const alone = new Capital()
    for (const y of bets) alone.observe(Math.min(1, y))
    const several = Array.from({ length: 4 }, () => new Capital())
    for (const [i, y] of bets.entries()) several[i % 4]?.observe(Math.min(1, y))
    const [leader, ...others] = several as [Capital, ...Capital[]]
    leader.putBeside(others.map((other) => other.tally()))
    expect(leader.count).toBe(alone.count)
    expect(leader.value / alone.value).toBeCloseTo(1, 9)
  })

  it('decide with evidence that is too little for each of them', () => {
    const judges = Array.from({ length: 4 }, () => new Judge())
    for (const judge of judges)
      for (let i = 0; i < 6; i++) {
        judge.observeStable(fact({}))
        judge.observeCanary(fact({ isFailed: true }))
      }
    expect(judges.map((judge) => judge.verdict().kind)).toEqual(['wait', 'wait', 'wait', 'wait'])
    const [leader, ...others] = judges as [Judge, ...Judge[]]
    leader.hear(others.map(told))
    expect(leader.verdict().kind).toBe('roll-back')
  })

  it('count what is told again once, and forget nothing of their own', () => {
    const [leader, other] = deal(2, 1) as [Judge, Judge]
    leader.hear([told(other)])
    const once = wonBy(leader)
    leader.hear([told(other)])
    expect(wonBy(leader)).toEqual(once)
    leader.hear([])
    expect(wonBy(leader)).toEqual(wonBy(deal(2, 1)[0] as Judge))
  })

  it('at another step count for the whole rollout, and not for the step', () => {
    const [leader, other] = deal(2, 1) as [Judge, Judge]
    const before = leader.verdict().evidence[0]
    leader.hear([{ tally: other.tally(), isSameStep: false }])
    const after = leader.verdict().evidence[0]
    expect(after?.pairs).toBeGreaterThan(before?.pairs ?? 0)
    expect(after?.wonInStep).toBe(before?.wonInStep)
  })
})
