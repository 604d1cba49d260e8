import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Recency, type RecencyItem } from './recency.ts'

interface Named extends RecencyItem {
  readonly name: number
}

describe('recency', () => {
  it('takes what a map that is deleted from and set again would have first', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 11 }), { maxLength: 200 }), (uses) => {
        const recency = new Recency<Named>()
        const items = new Map<number, Named>()
        const twin = new Map<number, true>()
        for (const use of uses) {
          // The two highest numbers take the oldest.
          if (use >= 10) {
            const oldest = twin.keys().next().value
            if (oldest !== undefined) twin.delete(oldest)
            const taken = recency.takeOldest()
            expect(taken?.name).toBe(oldest)
            if (taken !== undefined) items.delete(taken.name)
            continue
          }
          const known = items.get(use)
          if (known === undefined) {
            const item: Named = { name: use, older: undefined, newer: undefined }
            items.set(use, item)
            recency.add(item)
          } else recency.touch(known)
          twin.delete(use)
          twin.set(use, true)
          expect(recency.size).toBe(twin.size)
        }
        for (const name of twin.keys()) expect(recency.takeOldest()?.name).toBe(name)
        expect(recency.takeOldest()).toBeUndefined()
      }),
    )
  })

  it('does not take an item twice', () => {
    const recency = new Recency<Named>()
    const item: Named = { name: 1, older: undefined, newer: undefined }
    recency.add(item)
    expect(() => recency.add(item)).toThrow('added once')
  })
})
