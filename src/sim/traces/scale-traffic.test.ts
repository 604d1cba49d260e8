import { describe, expect, it } from 'vitest'
import { scaleTraffic } from './scale-traffic.ts'
import type { TraceRequest } from './trace.ts'

const COUNT = 1_000
const REQUESTS: readonly TraceRequest[] = Array.from({ length: COUNT }, (_, i) => ({
  atUs: i * 100_000,
  tenant: i % 2 === 0 ? 'even' : 'odd',
  promptTokens: 100 + i,
  outputTokens: 5,
}))

const scaled = (factors: Record<string, number>, seed = 1): TraceRequest[] => [
  ...scaleTraffic(REQUESTS, { seed, factorOf: (tenant) => factors[tenant ?? ''] ?? 1 }),
]
const of = (tenant: string, requests: readonly TraceRequest[]) => requests.filter((each) => each.tenant === tenant)

describe('traffic of a tenant', () => {
  it('stays as it is at 1', () => expect(scaled({})).toEqual(REQUESTS))

  it('is halved for that tenant alone', () => {
    const half = scaled({ even: 0.5 })
    expect(of('odd', half)).toEqual(of('odd', REQUESTS))
    expect(of('even', half).length).toBeGreaterThan(200)
    expect(of('even', half).length).toBeLessThan(300)
  })

  it('is left out at 0, and drawn from the seed between', () => {
    expect(of('even', scaled({ even: 0 }))).toEqual([])
    expect(scaled({ even: 0.5 }, 2)).toEqual(scaled({ even: 0.5 }, 2))
    expect(scaled({ even: 0.5 }, 2)).not.toEqual(scaled({ even: 0.5 }, 3))
    expect(of('odd', scaled({ even: 0.5, odd: 0.5 }))).toEqual(of('odd', scaled({ odd: 0.5 })))
  })

  it('is multiplied by copies within a second, in order of time', () => {
    const more = scaled({ even: 2.5 })
    expect(of('even', more).length).toBeGreaterThan(1_150)
    expect(of('even', more).length).toBeLessThan(1_350)
    for (const [i, { atUs }] of more.entries()) expect(atUs).toBeGreaterThanOrEqual(more[i - 1]?.atUs ?? 0)
    const originals = new Map(REQUESTS.map((each) => [each.promptTokens, each.atUs]))
    for (const { atUs, promptTokens } of more)
      expect(atUs - originals.get(promptTokens)!).toBeLessThanOrEqual(1_000_000)
  })

  it('shares with its copies only what an engine had cached of the prompt', () => {
    const asked = {
      model: 'm',
      band: 'standard',
      bid: 0,
      outputTokensMax: undefined,
      choiceCount: 1,
      sessionHash: 4,
      deadlineUs: 1,
      cachedTokens: 32,
    } as const
    const request = { ...REQUESTS[0]!, prefixHashes: [1, 2, 3, 4], hashUnitTokens: 16, asked }
    const [original, copy] = [...scaleTraffic([request], { seed: 1, factorOf: () => 2 })]
    expect(original).toBe(request)
    expect(copy).toMatchObject({ prefixHashes: [1, 2], asked: { sessionHash: undefined } })
  })
})
