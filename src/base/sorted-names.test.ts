import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SortedNames } from './sorted-names.ts'

const name = fc.stringMatching(/^[a-c]{0,3}$/)
const inOrder = (names: Iterable<string>): string[] => [...names].sort((a, b) => (a < b ? -1 : 1))

it('has the names that were added and not removed, in order, whatever the page', () => {
  const change = fc.record({ name, isAdded: fc.boolean() })
  const ask = fc.record({ after: name, prefix: name, limit: fc.integer({ min: 1, max: 5 }) })
  fc.assert(
    fc.property(fc.uniqueArray(name), fc.array(change), fc.array(ask), (first, changes, asks) => {
      const names = new SortedNames(first)
      const plain = new Set(first)
      for (const { name: one, isAdded } of changes) {
        if (isAdded) names.add(one)
        else names.remove(one)
        if (isAdded) plain.add(one)
        else plain.delete(one)
      }
      expect(names.size).toBe(plain.size)
      for (const { after, prefix, limit } of asks) {
        const expected = inOrder(plain).filter((one) => one > after && one.startsWith(prefix) && one !== prefix)
        expect(names.page({ after, prefix, limit })).toEqual(expected.slice(0, limit))
      }
    }),
  )
})

it('stays in order through many lists that are cut and emptied', () => {
  const numbers = Array.from({ length: 3_000 }, (_, i) => String((i * 7_919) % 3_000).padStart(5, '0'))
  const names = new SortedNames(numbers.slice(0, 1_500))
  for (const one of numbers.slice(1_500)) names.add(one)
  expect(names.page({ after: '', limit: 5_000 })).toEqual(inOrder(numbers))
  for (const one of numbers.slice(0, 2_900)) names.remove(one)
  expect(names.page({ after: '', limit: 5_000 })).toEqual(inOrder(numbers.slice(2_900)))
  for (const one of numbers) names.remove(one)
  expect(names.size).toBe(0)
  names.add('a')
  expect(names.page({ after: '', limit: 1 })).toEqual(['a'])
})
