import { expect, it } from 'vitest'
import { speedUnknown } from './unknown-speed.ts'

it('an engine that tells nothing is taken for an 8B model on a good GPU', () => {
  const { alone, drainPerReplicaUs, kvTokensMax, steps } = speedUnknown(4)
  expect([alone.prefillUs(1_000, 0), alone.tokenUs(1_000)]).toEqual([40_000, 12_000])
  // 1,800 weighted tokens a request: 40 ms of prefill, and 200 steps of 24 ms that 128 sequences share.
  expect(drainPerReplicaUs).toBeCloseTo(1_800 / (40_000 + (200 * 24_000) / 128))
  expect([kvTokensMax, steps]).toEqual([Number.POSITIVE_INFINITY, undefined])
})
