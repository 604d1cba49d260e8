import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Bag, type BagItem } from './bag.ts'

const things = (count: number): BagItem[] => Array.from({ length: count }, () => ({ bagIndex: -1 }))

it('holds what a set would hold', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 60 }), (steps) => {
      const all = things(10)
      const bag = new Bag<BagItem>()
      const set = new Set<BagItem>()
      for (const step of steps) {
        const thing = all[step] as BagItem
        if (set.has(thing)) {
          expect(bag.remove(thing)).toBe(true)
          set.delete(thing)
        } else {
          bag.add(thing)
          set.add(thing)
        }
        expect(bag.size).toBe(set.size)
        expect(new Set(bag)).toEqual(set)
      }
    }),
  )
})

it('takes a thing once, and gives it back once', () => {
  const [thing, stranger] = things(2) as [BagItem, BagItem]
  const bag = new Bag<BagItem>()
  bag.add(thing)
  expect(() => bag.add(thing)).toThrow('once')
  expect(bag.remove(stranger)).toBe(false)
  expect(bag.remove(thing)).toBe(true)
  expect(bag.remove(thing)).toBe(false)
})

it('is walked through as it was, whatever happens meanwhile', () => {
  const all = things(5)
  const bag = new Bag<BagItem>()
  for (const thing of all) bag.add(thing)
  let seen = 0
  for (const thing of bag) {
    seen++
    bag.remove(thing)
  }
  expect(seen).toBe(5)
  expect(bag.size).toBe(0)
})
