import { expect, it } from 'vitest'
import { makeRenaming } from './live-renaming.ts'

it('gives equal blocks equal names, and different blocks different ones, in whole numbers', () => {
  const renaming = makeRenaming()
  const first = renaming.blocks([1, 2, 3, 4_000_000_000])
  expect(renaming.blocks([1, 2, 9])).toEqual([first[0], first[1], expect.any(Number)])
  expect(new Set([...first, renaming.session(1), ...renaming.blocks([9])]).size).toBe(6)
  for (const name of first) expect(Number.isSafeInteger(name)).toBe(true)
  expect(renaming.blocks([])).toEqual([])
})

it('names nothing as another process does: without its key nobody can try texts', () => {
  const hashes = Array.from({ length: 128 }, (_, i) => i)
  const here = makeRenaming().blocks(hashes)
  const there = new Set(makeRenaming().blocks(hashes))
  expect(here.filter((name) => there.has(name))).toEqual([])
})
