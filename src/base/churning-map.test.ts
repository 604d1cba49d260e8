import { expect, it } from 'vitest'
import { ChurningMap } from './churning-map.ts'

it('holds what a map would hold, in its order, however much comes and goes', () => {
  const map = new ChurningMap<number, string>()
  const plain = new Map<number, string>()
  for (let i = 0; i < 10_000; i++) {
    map.set(i, `v${i}`)
    plain.set(i, `v${i}`)
    if (i < 50) continue
    const gone = (i * 7) % i
    expect(map.delete(gone)).toBe(plain.delete(gone))
    expect(map.delete(-1)).toBe(false)
    expect(map.get(i)).toBe(plain.get(i))
  }
  expect(map.size).toBe(plain.size)
  expect([...map.keys()]).toEqual([...plain.keys()])
  expect([...map.values()]).toEqual([...plain.values()])
  expect([...map.entries()]).toEqual([...plain])
})
