import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PersistentMap } from './persistent-map.ts'

/** Two names with the same FNV-1a hash, found by search: the smallest collision among two-word names. */
const COLLIDING = collision()

function collision(): readonly [string, string] {
  // FNV-1a over 32 bits: by the birthday bound a pair turns up after some 80,000 names.
  const seen = new Map<number, string>()
  for (let i = 0; i < 1_000_000; i++) {
    const name = `tenant-${i.toString(36)}`
    let hash = 0x811c9dc5
    for (let j = 0; j < name.length; j++) hash = Math.imul(hash ^ name.charCodeAt(j), 0x01000193)
    const other = seen.get(hash)
    if (other !== undefined) return [other, name]
    seen.set(hash, name)
  }
  throw new Error('no collision found')
}

const NAMES = [...Array.from({ length: 60 }, (_, i) => `k${i}`), ...COLLIDING]

describe('a persistent map', () => {
  it('does what a map does, and leaves every earlier version as it was', () => {
    const step = fc.record({ key: fc.constantFrom(...NAMES), value: fc.option(fc.nat(9), { nil: undefined }) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const twin = new Map<string, number>()
        const versions: Array<readonly [PersistentMap<number>, ReadonlyMap<string, number>]> = []
        let map = PersistentMap.empty<number>()
        for (const { key, value } of steps) {
          versions.push([map, new Map(twin)])
          map = value === undefined ? map.without(key) : map.with(key, value)
          if (value === undefined) twin.delete(key)
          else twin.set(key, value)
        }
        for (const [version, copy] of [...versions, [map, twin] as const]) {
          expect(version.size).toBe(copy.size)
          expect(new Map(version.entries())).toEqual(copy)
          for (const name of NAMES) expect(version.get(name)).toBe(copy.get(name))
        }
      }),
      { numRuns: 60 },
    )
  })

  it('keeps names apart whose hashes collide', () => {
    const [one, other] = COLLIDING
    const both = PersistentMap.empty<string>().with(one, 'one').with(other, 'other')
    expect([both.get(one), both.get(other), both.size]).toEqual(['one', 'other', 2])
    expect([both.without(one).get(one), both.without(one).get(other)]).toEqual([undefined, 'other'])
    expect([both.without(other).get(one), both.with(one, 'new').get(one)]).toEqual(['one', 'new'])
  })

  it('is the same when it is made of all entries at once, and changing it leaves it as it was', () => {
    const entries = Array.from({ length: 2_000 }, (_, i) => [`name-${(i * 7) % 1_500}`, i] as const)
    const atOnce = PersistentMap.from(entries)
    let oneByOne = PersistentMap.empty<number>()
    for (const [name, value] of entries) oneByOne = oneByOne.with(name, value)
    expect([...atOnce.entries()]).toEqual([...oneByOne.entries()])
    expect(atOnce.size).toBe(1_500)
    const before = [...atOnce.entries()]
    atOnce.with('name-3', -1).without('name-4').with('more', 1)
    expect([...atOnce.entries()]).toEqual(before)
    expect(PersistentMap.from([]).size).toBe(0)
  })

  it('holds many entries', () => {
    let map = PersistentMap.empty<number>()
    for (let i = 0; i < 5_000; i++) map = map.with(`key-${i}`, i)
    expect(map.size).toBe(5_000)
    expect(map.get('key-4999')).toBe(4_999)
    expect(map.get('key-5000')).toBeUndefined()
    for (let i = 0; i < 5_000; i++) map = map.without(`key-${i}`)
    expect([map.size, [...map.entries()]]).toEqual([0, []])
  })
})
