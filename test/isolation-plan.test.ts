import { describe, expect, it } from 'vitest'
import { type Ask, bodyOf, planOf, SECONDS, SPIKE, TENANTS, WARMUP_S } from '../bench/load/isolation/plan.ts'

const ratePerS = (asks: readonly Ask[], fromS: number, toS: number): number =>
  asks.filter(({ atS }) => atS >= fromS && atS < toS).length / (toS - fromS)

describe('the plan of the live isolation trial', () => {
  const chats = planOf('chats', 1)
  const long = planOf('long answers', 1)

  it('is the same for every arm, and other requests by another seed', () => {
    expect(planOf('chats', 1)).toEqual(chats)
    expect(planOf('chats', 2)).not.toEqual(chats)
    expect(chats.map(({ atS }) => atS)).toEqual(chats.map(({ atS }) => atS).toSorted((a, b) => a - b))
  })

  it.each(TENANTS.filter((tenant) => tenant !== 'noisy'))('has %s ask for half of its share all the time', (tenant) => {
    const own = chats.filter((ask) => ask.tenant === tenant)
    expect(ratePerS(own, -WARMUP_S, SECONDS)).toBeCloseTo(2, 0)
    // What the noisy tenant does changes nothing for the others.
    expect(long.filter((ask) => ask.tenant === tenant)).toEqual(own)
  })

  it('has the noisy tenant ask for fifteen times as much in its spike', () => {
    const own = chats.filter(({ tenant }) => tenant === 'noisy')
    expect(ratePerS(own, SPIKE.fromS, SPIKE.toS)).toBeGreaterThan(27)
    expect(ratePerS(own, SPIKE.fromS, SPIKE.toS)).toBeLessThan(33)
    expect(ratePerS(own, SPIKE.toS, SECONDS)).toBeLessThan(4)
  })

  it('asks for long answers in the spike alone, without max_tokens', () => {
    const asked = long.filter(({ minTokens }) => minTokens !== undefined)
    expect(asked).toEqual(long.filter(({ isSpike }) => isSpike))
    expect(asked.every(({ tenant, maxTokens }) => tenant === 'noisy' && maxTokens === undefined)).toBe(true)
    const body = JSON.parse(bodyOf(asked[0] as Ask, 3, 1)) as Record<string, unknown>
    expect(body['min_tokens']).toBe(2_000)
    expect(body).not.toHaveProperty('max_tokens')
  })

  it('sends no two prompts that begin alike', () => {
    const beginOf = (index: number): string => bodyOf(chats[index] as Ask, index, 1).slice(0, 160)
    expect(beginOf(1)).not.toBe(beginOf(2))
  })
})
