import { describe, expect, it } from 'vitest'
import { makeTenant } from '../../test/support/demand.ts'
import { settled, story } from '../../test/support/entries.ts'
import { secondsToUs } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import type { RateLimitView } from '../policy/budgets/budgets.ts'
import { BudgetLaw } from './budget-law.ts'

/** 600 tokens a minute are 10 a second; 60 requests a minute are one. */
const TENANT = makeTenant('acme', {
  allowance: { tokens: { perMinute: 600, burst: 1_000 }, requests: { perMinute: 60, burst: 10 } },
})

const left = (tokens: number, requests: number): RateLimitView => ({
  tokens: { limit: 1_000, remaining: tokens, resetUs: 0 },
  requests: { limit: 10, remaining: requests, resetUs: 0 },
})

function lawAfter(entries: readonly Entry[]): BudgetLaw {
  const law = new BudgetLaw([TENANT], secondsToUs(1))
  for (const entry of entries) law.take(entry)
  return law
}

/** `story` reserves 150 tokens at second 1 and ends at second 2, with 110 tokens used. */
const ran = story()

describe('the account that the journal gives', () => {
  it('agrees with budgets that charged what was used', () => {
    // 1,000 − 150, a second of refill, 40 back: 900. One request was taken, and one refilled.
    expect(lawAfter(ran).differences(secondsToUs(2), () => left(900, 10))).toEqual([])
  })

  it('finds a reservation that was never given back', () => {
    const [found] = lawAfter(ran).differences(secondsToUs(2), () => left(860, 10))
    expect(found).toBe('acme has 860 tokens left, and its tickets leave 900')
  })

  it('finds a charge that was never made', () => {
    expect(lawAfter(ran).differences(secondsToUs(2), () => left(1_000, 10))).toHaveLength(1)
  })

  it('gives a request back to a ticket that never ran', () => {
    const expired = settled({
      outcome: 'expired',
      attempts: 0,
      usage: { promptTokens: 0, cachedTokens: 0, outputTokens: 0 },
    })
    const [arrived, admitted] = story(expired)
    const law = lawAfter([arrived as Entry, admitted as Entry, expired])
    expect(law.differences(secondsToUs(2), () => left(1_000, 10))).toEqual([])
    expect(law.differences(secondsToUs(2), () => left(1_000, 8))).toHaveLength(1)
  })

  it('owes at most one burst', () => {
    const usage = { promptTokens: 5_000, cachedTokens: 0, outputTokens: 0 }
    const law = lawAfter(story(settled({ usage })))
    // −1,000 at second 2; half a minute later 300 have come back, and nothing is left to spend.
    expect(law.differences(secondsToUs(32), () => left(0, 10))).toEqual([])
    expect(law.differences(secondsToUs(112), () => left(100, 10))).toEqual([])
  })

  it('has nothing to say of a tenant without limits, and of tickets that hold nothing', () => {
    const law = new BudgetLaw([makeTenant('free')], 0)
    for (const entry of ran) law.take(entry)
    expect(law.differences(secondsToUs(2), () => left(0, 0))).toEqual([])
    const observed = ran.map((entry) => (entry.kind === 'admitted' ? { ...entry, reservedTokens: undefined } : entry))
    expect(lawAfter(observed).differences(secondsToUs(2), () => left(1_000, 10))).toEqual([])
  })
})
