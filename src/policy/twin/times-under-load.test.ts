import { describe, expect, it } from 'vitest'
import type { Load } from '../limits/ledger.ts'
import { type OwnPrompt, timesUnderLoad } from './times-under-load.ts'

const LOAD: Load = {
  sequences: 0,
  kvTokens: 0,
  contextTokens: 0,
  prefillMilliPerToken: 0,
  prefillTokens: 0,
  readTokens: 0,
  engineUs: 0,
}
const OWN: OwnPrompt = { promptTokens: 1_000, cachedTokens: 0, plannedTokens: undefined }
/** 25 µs a prompt token alone; 5,925 µs and 75 µs a sequence: 6 ms beside none, 9 ms (rounded) beside 40. */
const ALONE = { prefillUs: (tokens: number) => 25 * tokens, tokenUs: () => 6_000 }
const STEPS = {
  tokenBudget: 2_048,
  meanTokenUs: (sequences: number, _context: number, prompt: number) => 5_925 + 75 * sequences + 10 * prompt,
}
const timesOf = (load: Partial<Load>, own: Partial<OwnPrompt> = {}) =>
  timesUnderLoad(ALONE, STEPS, { ...LOAD, ...load }, { ...OWN, ...own })

describe('times under load', () => {
  it('follow the example of their description', () => {
    // 4,000 tokens in two steps, each longer by what 40 sequences add to a step.
    const { ttftUs } = timesOf({ sequences: 40, prefillTokens: 3_000 })
    expect(ttftUs).toBe(100_000 + 2 * 39 * 75)
  })

  it('are the times alone at an idle replica', () => {
    expect(timesOf({})).toEqual({ ttftUs: 25_000, tokenUs: 5_925, promptTokenUs: 10 })
  })

  it('add half of the running step when nothing waits to be read, and nothing when something does', () => {
    const besideUs = 9 * 75
    expect(timesOf({ sequences: 10 }).ttftUs).toBe(25_000 + besideUs + (5_925 + 750) / 2)
    expect(timesOf({ sequences: 10, prefillTokens: 1 }).ttftUs).toBe(25_025 + besideUs)
  })

  it('do not count an attempt twice that the load already has', () => {
    const before = timesOf({ sequences: 10, contextTokens: 10_000, prefillTokens: 500 })
    const after = timesOf({ sequences: 11, contextTokens: 11_000, prefillTokens: 1_500 }, { plannedTokens: 1_000 })
    expect(after.ttftUs).toBe(before.ttftUs)
  })

  it('leave out what is cached', () => {
    expect(timesOf({}, { cachedTokens: 600 }).ttftUs).toBe(10_000)
  })
})
