import { describe, expect, it } from 'vitest'
import type { Ledger } from './ledger.ts'
import { PartLoad, TotalLoad } from './part-load.ts'

const ledger = {
  held: 12,
  heldKvTokens: 4_000,
  heldContextTokens: 3_000,
  heldPrefillMilli: 8,
  heldPrefillTokens: 600,
  strangerSequences: 5,
  strangerKvTokens: 700,
  sequences: 17,
  kvTokens: 4_700,
  contextTokens: 3_700,
  prefillMilliPerToken: 9,
  prefillTokens: 900,
  readTokens: 50,
  engineUs: 60,
} as unknown as Ledger

describe('the load of a gateway with a part of a replica', () => {
  it('is what it holds divided by its part, and the strangers’ load as it is', () => {
    const load = new PartLoad(ledger)
    load.part = 1 / 4
    expect(load.sequences).toBe(4 * 12 + 5)
    expect(load.kvTokens).toBe(4 * 4_000 + 700)
    expect(load.contextTokens).toBe(4 * 3_000 + 700)
    expect(load.prefillTokens).toBe(4 * 600)
    expect(load.prefillMilliPerToken).toBe(4 * 8)
    expect([load.readTokens, load.engineUs]).toEqual([50, 60])
  })

  it('is what it holds and the strangers’ where it has all of the replica', () => {
    const load = new PartLoad(ledger)
    expect([load.sequences, load.kvTokens, load.contextTokens]).toEqual([17, 4_700, 3_700])
  })
})

it('the load of all gateways is everything in flight, with our unread prompts only', () => {
  const load = new TotalLoad({ ledger })
  expect([load.sequences, load.kvTokens, load.contextTokens]).toEqual([17, 4_700, 3_700])
  expect([load.prefillMilliPerToken, load.prefillTokens]).toEqual([9, 600])
})
