import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SumTree } from './sum-tree.ts'

describe('sum tree', () => {
  it('sums what a list would, after any moves', () => {
    const move = fc.record({ slot: fc.nat(40), key: fc.nat(30), first: fc.nat(1_000), isRemoved: fc.boolean() })
    fc.assert(
      fc.property(fc.array(move, { maxLength: 200 }), fc.nat(31), (moves, x) => {
        const tree = new SumTree()
        const list = new Map<number, { key: number; first: number }>()
        for (const { slot, key, first, isRemoved } of moves) {
          if (isRemoved) {
            tree.remove(slot)
            list.delete(slot)
          } else {
            tree.set(slot, key, { first, second: 1, third: first / 4 })
            list.set(slot, { key, first })
          }
        }
        tree.assertInvariants()
        const below = [...list.values()].filter((entry) => entry.key <= x)
        expect(tree.size).toBe(list.size)
        const first = below.reduce((sum, e) => sum + e.first, 0)
        expect(tree.sumUpTo(x)).toEqual({ first, second: below.length, third: first / 4 })
        expect(tree.total.second).toBe(list.size)
      }),
    )
  })
})
