import { expect, it } from 'vitest'
import { administer } from '../../../test/support/administration-laws.ts'

/** As `administration.test.ts`, with other seeds and as many calls as the bar asks for. */
it('keeps its laws over 100,000 random calls by every role', { timeout: 300_000 }, () => {
  const { violations, applied } = administer(1_000_000, 100_000)
  expect(violations).toEqual([])
  expect(applied.size).toBe(11)
})
