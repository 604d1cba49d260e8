import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SumTree } from '../../base/sum-tree.ts'
import { MemberSums } from './member-sums.ts'

const amount = fc.double({ min: 0, max: 1e9, noNaN: true })

describe('sums of members', () => {
  it('are those of a tree, bit for bit, with one member and with more', () => {
    const step = fc.record({
      slot: fc.integer({ min: 0, max: 3 }),
      key: amount,
      isLeaving: fc.boolean(),
      amounts: fc.tuple(amount, amount, amount),
      x: amount,
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), fc.boolean(), (steps, isOneOnly) => {
        const sums = new MemberSums()
        const tree = new SumTree()
        for (const { slot: drawn, key, isLeaving, amounts, x } of steps) {
          const slot = isOneOnly ? 0 : drawn
          const [first, second, third] = amounts
          if (isLeaving) {
            sums.remove(slot)
            tree.remove(slot)
          } else {
            sums.set(slot, key, first, second, third)
            tree.set(slot, key, { first, second, third })
          }
          expect(sums.sumUpTo(x)).toEqual(tree.sumUpTo(x))
          expect(sums.sumUpTo(key)).toEqual(tree.sumUpTo(key))
          expect(sums.firstTotal).toBe(tree.firstTotal)
          expect(sums.secondTotal).toBe(tree.secondTotal)
        }
      }),
    )
  })
})
