import { describe, expect, it } from 'vitest'
import type { EngineTwin } from './engine-twin.ts'
import type { TwinPrior } from './twin-prior.ts'
import { Twins } from './twins.ts'

const PRIOR: TwinPrior = {
  name: 'known',
  decode: [6_000, 100, 0.02, 9],
  read: [5_000, 20, 20, 0.001],
  tokenBudget: 2_048,
}
const makeTwins = () => new Twins({ priors: [PRIOR], prior: PRIOR, sequencesMax: 256 })

/** Stretches of 32 tokens that take so many microseconds a token, at one sequence. */
function teach(twins: Twins, replicaId: string, rows: number, tokenUs: number): EngineTwin {
  const { twin } = twins.of(replicaId)
  const stretch = twin.openStretch(0, 0)
  for (let i = 1; i <= rows; i++) {
    twin.closeStretch(i * 32 * tokenUs, stretch, i * 32)
    twins.learned(twin)
  }
  return twin
}

describe('the twins of a pool', () => {
  it('are as many as its replicas: a replica that is gone is forgotten', () => {
    const twins = makeTwins()
    for (let i = 0; i < 1_000; i++) {
      twins.of(`r${i}`)
      if (i >= 3) twins.forget(`r${i - 3}`)
    }
    expect([...twins.all().keys()]).toEqual(['r997', 'r998', 'r999'])
    twins.forget('nobody')
    expect(twins.all().size).toBe(3)
    expect(twins.of('r999')).toBe(twins.of('r999'))
  })

  it('know an engine that two pools have together, and each pool hears of its memory', () => {
    const [one, two] = [makeTwins(), makeTwins()]
    const learned = one.of('one-r')
    two.adopt('two-r', learned)
    teach(one, 'one-r', 300, 20_000)
    expect(two.tokenUs(0)).toBe(one.tokenUs(0))
    const holdings = { held: 1, heldContextTokens: 100 }
    expect(two.reportKv(0, 'two-r', { kvTokensMax: 8_000 }, holdings)).toBe(true)
    expect(two.kvTokensMax).toBe(8_000)
    expect(one.reportKv(0, 'one-r', { kvTokensMax: 8_000 }, holdings)).toBe(false)
    expect(one.kvTokensMax).toBe(8_000)
    one.forget('one-r')
    expect(two.of('two-r')).toBe(learned)
  })

  it('learn each by itself, and the most experienced speaks for the pool', () => {
    const twins = makeTwins()
    const slow = teach(twins, 'slow', 300, 20_000)
    const fast = teach(twins, 'fast', 100, 5_000)
    expect(slow.tokenUs(0)).toBeGreaterThan(2 * fast.tokenUs(0))
    expect(twins.tokenUs(0)).toBe(slow.tokenUs(0))
    teach(twins, 'fast', 300, 5_000)
    expect(twins.tokenUs(0)).toBe(fast.tokenUs(0))
    expect(twins.meanTokenUs(8, 100, 3)).toBe(fast.meanTokenUs(8, 100, 3))
    expect(twins.prefillUs(800, 0)).toBe(fast.prefillUs(800, 0))
    expect(twins.shareUs(800, 100)).toBe(fast.shareUs(800, 100))
    expect(twins.tokenBudget).toBe(2_048)
  })

  it('begin with what the most experienced knows, once that is trusted', () => {
    const twins = makeTwins()
    teach(twins, 'first', 10, 20_000)
    expect(twins.of('early').twin.tokenUs(0)).toBe(6_100)
    const first = teach(twins, 'first', 300, 20_000)
    expect(first.isTrusted).toBe(true)
    const joined = twins.of('joined').twin
    expect(joined.tokenUs(0)).toBe(first.tokenUs(0))
    expect(joined.rows).toBe(0)
    expect(joined.view().prior).toContain('another replica')
  })

  it('give the word to the most experienced of the rest when the one that speaks is gone', () => {
    const twins = makeTwins()
    const old = teach(twins, 'old', 500, 20_000)
    teach(twins, 'young', 50, 5_000)
    const middle = teach(twins, 'middle', 100, 8_000)
    twins.forget('old')
    expect(twins.tokenUs(0)).toBe(middle.tokenUs(0))
    // Its last answer ends after it has left.
    twins.learned(old)
    expect(twins.tokenUs(0)).toBe(middle.tokenUs(0))
  })

  it('keep what the last one knew for the next that joins', () => {
    const twins = makeTwins()
    const last = teach(twins, 'last', 300, 20_000)
    twins.forget('last')
    expect(twins.tokenUs(0)).toBe(last.tokenUs(0))
    expect(twins.of('next').twin.tokenUs(0)).toBe(last.tokenUs(0))
    expect(twins.of('next').twin).not.toBe(last)
  })

  it('call nothing infeasible that they do not know, or have not seen for long', () => {
    const twins = makeTwins()
    twins.of('r')
    const said = twins.prefillUs(1_000, 0)
    expect(twins.hopefulAt(0).prefillUs(1_000, 0)).toBeCloseTo(said / 10, 6)
    const { heardAt } = teach(twins, 'r', 300, 20_000)
    const hopeAfter = (us: number): number => twins.hopefulAt(heardAt + us).tokenUs(500) / twins.tokenUs(500)
    expect(hopeAfter(0)).toBeCloseTo(0.5, 9)
    expect(hopeAfter(2_000_000)).toBeCloseTo(0.25, 9)
    expect(hopeAfter(60_000_000)).toBeLessThan(0.02)
  })
})
