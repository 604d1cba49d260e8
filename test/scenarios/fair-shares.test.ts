import { describe, it } from 'vitest'
import { expectMaxMinShares, type Party } from '../support/max-min-shares.ts'

/** The demands that differ most; others: `fair-shares.long.test.ts`. */
describe('shares against the max-min oracle', () => {
  it.each<[string, Party[]]>([
    [
      'two ask for little, one for everything',
      [
        { weight: 2, asks: 0.5 },
        { weight: 1, asks: 0.7 },
        { weight: 1, asks: 8 },
      ],
    ],
  ])('%s', { timeout: 60_000 }, (_, parties) => expectMaxMinShares(parties))
})
