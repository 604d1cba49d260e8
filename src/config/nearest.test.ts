import fc from 'fast-check'
import { expect, it } from 'vitest'
import { editDistance, nearest } from './nearest.ts'

it.each([
  ['prot', 'port'],
  ['maxqueue', undefined],
  ['requestMax', 'requestsMax'],
  ['', undefined],
])('%s → %s', (typed, meant) => expect(nearest(typed, ['port', 'host', 'requestsMax'])).toBe(meant))

it('is a distance', () => {
  const word = fc.string({ maxLength: 8 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a))
      expect(editDistance(a, b) === 0).toBe(a === b)
      expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
    }),
  )
})
