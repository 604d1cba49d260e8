import { expect, it } from 'vitest'
import { BestHits } from './best-hits.ts'

it('finds whatever anybody of the same tenant sent before, and nothing else', () => {
  const best = new BestHits()
  best.sent('a', [1, 2, 3], 60)
  expect(best.count).toEqual({ hits: 0, queries: 60 })
  best.sent('a', [1, 2, 9], 60)
  expect(best.count).toEqual({ hits: 32, queries: 120 })
  best.sent('b', [1, 2, 3], 60)
  best.sent('a', [2, 3], 40)
  // Names are chained: who has sent [1 2 3] holds them by name, wherever a prompt begins.
  expect(best.count).toEqual({ hits: 64, queries: 220 })
})

it('computes at least one token, and gives up rather than grow without end', () => {
  const best = new BestHits()
  best.sent('a', [1, 2], 32)
  best.sent('a', [1, 2], 32)
  expect(best.count).toEqual({ hits: 16, queries: 64 })
  best.sent(
    'a',
    Array.from({ length: 2_000_001 }, (_, i) => i),
    40_000_000,
  )
  expect(best.count).toBeUndefined()
})
