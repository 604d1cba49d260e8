import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Ring } from './ring.ts'

describe('Ring', () => {
  it('does what a plain array would, under any commands', () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.array(fc.boolean()), (capacity, commands) => {
        const ring = new Ring<number>(capacity)
        const model: number[] = []
        const onModel = (item: number | undefined) => {
          if (item === undefined) return model.shift()
          model.push(item)
          return model.length > capacity && model.shift() !== undefined
        }
        for (const [i, isPush] of commands.entries()) {
          const item = isPush ? i : undefined
          expect(item === undefined ? ring.shift() : ring.push(item)).toBe(onModel(item))
          expect(ring.size).toBe(model.length)
        }
      }),
    ))

  it('holds at least one', () => {
    const ring = new Ring<string>(0)
    expect(ring.capacity).toBe(1)
    expect(ring.push('a')).toBe(false)
    expect(ring.push('b')).toBe(true)
    expect(ring.shift()).toBe('b')
  })
})
