import { describe, expect, it } from 'vitest'
import { measureServiceGap } from '../support/served-gap.ts'

/** In short, and with room for chance; `bench/experiments/served-gap.ts` is the whole of it. */
describe('accumulated service gap', () => {
  it.each([2, 8])(
    'of %i overloading tenants is hardly larger with predicted lengths',
    { timeout: 60_000 },
    async (tenantCount) => {
      const seeds = [1, 2]
      let known = 0
      let predicted = 0
      for (const seed of seeds) {
        known += (await measureServiceGap({ tenantCount, knows: 'true-length', seed, durationS: 90 })).gap
        predicted += (await measureServiceGap({ tenantCount, knows: 'history', seed, durationS: 90 })).gap
      }
      expect(predicted).toBeLessThanOrEqual(1.25 * known)
    },
  )
})
