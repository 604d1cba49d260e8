import { describe, expect, it } from 'vitest'
import { sumServiceGaps } from '../support/served-gap.ts'

/** With room for chance; `bench/experiments/served-gap.ts` is the whole of it. */
describe('accumulated service gap', () => {
  it.each([2, 8])(
    'of %i overloading tenants is hardly larger with predicted lengths',
    { timeout: 240_000 },
    async (tenantCount) => {
      const { known, predicted } = await sumServiceGaps({ tenantCount, seeds: [1, 2], durationS: 90 })
      expect(predicted).toBeLessThanOrEqual(1.25 * known)
    },
  )
})
