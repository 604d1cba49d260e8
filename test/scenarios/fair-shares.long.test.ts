import { describe, it } from 'vitest'
import { expectMaxMinShares, type Party } from '../support/max-min-shares.ts'

describe('shares against the max-min oracle', () => {
  it.each<[string, Party[]]>([
    [
      'all ask for three times as much',
      [
        { weight: 1, asks: 3 },
        { weight: 1, asks: 3 },
        { weight: 4, asks: 3 },
      ],
    ],
    [
      'one asks for little',
      [
        { weight: 1, asks: 0.4 },
        { weight: 1, asks: 4 },
        { weight: 2, asks: 2 },
      ],
    ],
  ])('%s', { timeout: 60_000 }, (_, parties) => expectMaxMinShares(parties))
})
