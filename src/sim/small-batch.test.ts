import { expect, it } from 'vitest'
import type { Entry, Settled } from '../domain/entry.ts'
import type { Scenario } from './scenario/scenario.ts'
import { simulate } from './simulate.ts'

/** Engines that take in four answers at once, and forty clients that always want one, half of them with a high bid. */
const SCENARIO: Scenario = {
  name: 'small-batch',
  about: '',
  durationS: 60,
  platform: {
    models: [{ name: 'chat' }],
    engine: { batchSizeMax: 4 },
    pools: [{ model: 'chat', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 1 }],
    slos: [{ name: 'slow', ttftMs: 60_000, interTokenMs: 100, totalMs: 120_000 }],
    tenants: [{ id: 'bidder', slo: 'slow', bidMax: 100, contract: 'reject' }],
  },
  workload: [
    {
      tenant: 'bidder',
      model: 'chat',
      bids: [0, 0, 0, 0, 0, 0, 0, 0, 0, 100],
      arrivals: { kind: 'poisson', ratePerS: 5 },
      prompt: { kind: 'fixed', tokens: 100 },
      output: { kind: 'fixed', tokens: 150 },
    },
  ],
}

it('beyond its batch an engine gets nothing: what waits does so in lanes, where a high bid goes first', async () => {
  const entries: Entry[] = []
  let queuedMax = 0
  const report = await simulate(SCENARIO, {
    seed: 1,
    onEntry: (entry) => {
      entries.push(entry)
      if (entry.kind === 'pool-reported') queuedMax = Math.max(queuedMax, entry.queuedCount)
    },
  })
  expect(report.laws).toEqual([])
  expect(queuedMax).toBeGreaterThan(8)
  const settled = entries.filter((entry): entry is Settled => entry.kind === 'settled' && entry.outcome === 'completed')
  const meanWaitMs = (bid: number): number => {
    const waits = settled.filter((one) => one.bid === bid).map((one) => (one.grantedAt ?? one.at) - one.arrivedAt)
    return waits.reduce((sum, us) => sum + us, 0) / waits.length / 1_000
  }
  expect(meanWaitMs(100)).toBeLessThan(600)
  expect(meanWaitMs(0)).toBeGreaterThan(4 * meanWaitMs(100))
})
