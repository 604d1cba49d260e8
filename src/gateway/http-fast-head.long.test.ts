import { describe, expect, it } from 'vitest'
import { fuzzFastPath } from '../../test/support/fast-path-fuzz.ts'

describe('the fast path against llhttp', () => {
  it('agrees on all it takes of a million mutated requests', { timeout: 180_000 }, async () => {
    const { taken, differences } = await fuzzFastPath(15, 1_000_000)
    expect(differences).toEqual([])
    // Enough of them are right for the comparison to mean something.
    expect(taken).toBeGreaterThan(200_000)
  })
})
