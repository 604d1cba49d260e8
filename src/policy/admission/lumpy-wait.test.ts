import { expect, it } from 'vitest'
import { isLumpy } from './lumpy-wait.ts'

it('is lumpy where one piece of room takes a twentieth of the promised first token', () => {
  const patience = { ttftUs: 500_000, finishUs: 10_000_000 }
  expect([25_000, 24_000, undefined].map((releaseUs) => isLumpy(releaseUs, patience))).toEqual([true, false, false])
  // Nothing is promised about the first token of offline work.
  expect(isLumpy(1e9, { ...patience, ttftUs: Number.POSITIVE_INFINITY })).toBe(false)
})
