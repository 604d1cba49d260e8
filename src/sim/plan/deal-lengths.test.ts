import { expect, it } from 'vitest'
import type { TraceRequest } from '../traces/trace.ts'
import { dealLengths } from './deal-lengths.ts'

const REQUESTS: readonly TraceRequest[] = Array.from({ length: 600 }, (_, i) => ({
  atUs: i * 500_000,
  tenant: i % 3 === 0 ? 'a' : 'b',
  promptTokens: i,
  outputTokens: 2 * i,
}))
const dealt = (seed: number): TraceRequest[] => [...dealLengths(REQUESTS, seed)]

it('plays the recording itself with seed 1', () => expect(dealt(1)).toEqual(REQUESTS))

it('keeps instants and tenants, and exchanges lengths within a tenant’s minute', () => {
  const other = dealt(2)
  const who = (requests: readonly TraceRequest[]) => requests.map(({ atUs, tenant }) => `${atUs} ${tenant}`)
  expect(who(other)).toEqual(who(REQUESTS))
  expect(other).not.toEqual(REQUESTS)
  const sorted = (requests: readonly TraceRequest[]) =>
    requests.map((each) => each.promptTokens).toSorted((a, b) => a - b)
  expect(sorted(other)).toEqual(sorted(REQUESTS))
  for (const { atUs, tenant, promptTokens, outputTokens } of other) {
    expect(outputTokens).toBe(2 * promptTokens)
    expect(Math.floor(promptTokens / 120)).toBe(Math.floor(atUs / 60_000_000))
    expect(promptTokens % 3 === 0 ? 'a' : 'b').toBe(tenant)
  }
})

it('is the same for the same seed, and another for another', () => {
  expect(dealt(2)).toEqual(dealt(2))
  expect(dealt(2)).not.toEqual(dealt(3))
})
