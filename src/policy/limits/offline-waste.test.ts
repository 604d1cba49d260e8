import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { OfflineWaste } from './offline-waste.ts'

describe('the meter of wasted offline tokens', () => {
  it('lets nothing go before anything was done, and a tenth of all afterwards', () => {
    const meter = new OfflineWaste()
    expect(meter.tokensMax).toBe(0)
    meter.done(9_000)
    expect(meter.tokensMax).toBeCloseTo(1_000)
    meter.waste(1_000)
    expect(meter.tokensMax).toBeCloseTo(0)
    expect(meter.view()).toEqual({ doneTokens: 9_000, wastedTokens: 1_000 })
  })

  it('knows the ratios none and all', () => {
    const none = new OfflineWaste({ ratioMax: 0 })
    const all = new OfflineWaste({ ratioMax: 1 })
    for (const meter of [none, all]) meter.done(1_000)
    expect(none.tokensMax).toBe(0)
    all.waste(1_000_000)
    expect(all.tokensMax).toBe(Number.POSITIVE_INFINITY)
  })

  it('does not save up more than a burst', () => {
    const meter = new OfflineWaste({ burstTokens: 500 })
    meter.done(1_000_000)
    expect(meter.tokensMax).toBeCloseTo(500)
  })

  it('never allows more than its ratio, in any order of work and waste', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const rng = Rng.stream(seed, 'waste')
      const ratioMax = 0.01 + 0.9 * rng.next()
      const meter = new OfflineWaste({ ratioMax, burstTokens: 20_000 })
      for (let n = 0; n < 500; n++) {
        const tokens = Math.ceil(rng.next() * 3_000)
        if (rng.next() < 0.5) meter.done(tokens)
        else if (tokens <= meter.tokensMax) meter.waste(tokens)
        const { doneTokens, wastedTokens } = meter.view()
        expect(wastedTokens).toBeLessThanOrEqual(ratioMax * (doneTokens + wastedTokens) + 1e-6)
      }
    }
  })
})
