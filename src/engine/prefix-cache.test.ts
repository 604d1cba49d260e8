import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BlockPool } from './block-pool.ts'
import { PrefixCache } from './prefix-cache.ts'

describe('a prefix cache', () => {
  it('keeps salts apart, even for the same name', () => {
    const cache = new PrefixCache()
    cache.name('red', 7)
    expect(cache.find('blue', 7)).toBeUndefined()
    expect(cache.find('red', 7)).toBeDefined()
  })

  it('forgets the unit unused for longest, and never one in use', () => {
    const cache = new PrefixCache()
    const [first, second, third] = [1, 2, 3].map((hash) => cache.name('', hash)) as [number, number, number]
    cache.release(second)
    cache.release(first)
    cache.hold(second)
    cache.release(second)
    cache.evictOldest()
    expect([1, 2, 3].map((hash) => cache.find('', hash))).toEqual([undefined, second, third])
    cache.evictOldest()
    expect(cache.idleUnits).toBe(0)
    expect(cache.heldUnits).toBe(1)
    expect(() => cache.evictOldest()).toThrow('only an idle unit')
  })

  it('grows with the number of names', () => {
    const cache = new PrefixCache(2)
    for (let hash = 0; hash < 100; hash++) cache.release(cache.name('', hash))
    expect(cache.idleUnits).toBe(100)
    for (let i = 0; i < 99; i++) cache.evictOldest()
    expect(cache.find('', 99)).toBeDefined()
  })
})

describe('a block pool', () => {
  it('has as many blocks free and held as there are, whatever happens (L8)', () => {
    const move = fc.record({ kind: fc.constantFrom('take', 'give', 'name', 'release'), amount: fc.nat(9) })
    fc.assert(
      fc.property(fc.array(move), (moves) => {
        const cache = new PrefixCache()
        const pool = new BlockPool({ blockCount: 40, unitBlocks: 3, cache })
        let own = 0
        let hash = 0
        const held: number[] = []
        for (const { kind, amount } of moves) {
          if (kind === 'take' && amount <= pool.freeBlocks) {
            pool.take(amount)
            own += amount
          } else if (kind === 'give' && amount <= own) {
            pool.give(amount)
            own -= amount
          } else if (kind === 'name' && own >= 3) {
            held.push(cache.name('', hash++))
            own -= 3
          } else if (kind === 'release' && held.length > 0) {
            cache.release(held.shift() as number)
          }
          expect(pool.freeBlocks + own + 3 * held.length).toBe(40)
        }
      }),
    )
  })

  it('takes blank blocks before it forgets anything', () => {
    const cache = new PrefixCache()
    const pool = new BlockPool({ blockCount: 10, unitBlocks: 2, cache })
    pool.take(2)
    cache.release(cache.name('', 1))
    pool.take(8)
    expect(cache.find('', 1)).toBeDefined()
    pool.take(1)
    expect(cache.find('', 1)).toBeUndefined()
    expect(pool.evictedUnits).toBe(1)
    expect(pool.freeBlocks).toBe(1)
  })
})
