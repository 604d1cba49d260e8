import { describe, expect, it } from 'vitest'
import { journalOf } from '../../test/support/simulated.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import type { Scenario, StreamSpec } from '../sim/scenario/scenario.ts'

/**
 * Spill: a request that is refused here is offered to another region before it is refused for good. With a margin that
 * nothing can beat, the choice of a pool never leaves home by itself, so whatever is served over there was spilled.
 */
const MARGIN_MS = 60_000

const crowd: StreamSpec = {
  tenant: 'a',
  region: 'eu',
  model: 'm',
  arrivals: { kind: 'poisson', ratePerS: 60 },
  prompt: { kind: 'fixed', tokens: 2_000 },
  output: { kind: 'fixed', tokens: 200 },
}

/** `eu` with one replica and far too much to do; `us`, 60 ms away, with four and nothing to do. */
const scenario = (workload: StreamSpec[]): Scenario => ({
  name: 'spill',
  about: 'made up',
  durationS: 10,
  regions: { roundTrips: [{ between: ['eu', 'us'], ms: 60 }] },
  platform: {
    models: [{ name: 'm' }],
    pools: [
      { model: 'm', region: 'eu', replicas: 1, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
      { model: 'm', region: 'us', replicas: 4, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
    ],
    slos: [{ name: 'people', ttftMs: 1_000, interTokenMs: 100, totalMs: 20_000 }],
    tenants: [{ id: 'a', slo: 'people' }],
    regions: { spillMarginMs: MARGIN_MS },
    ladder: { enabled: false },
  },
  workload,
})

/** Of clients, not of gateways: what a gateway sends on is a ticket of its own over there. */
const clientsOf = (entries: readonly Entry[]): Settled[] =>
  entries.filter((entry) => entry.kind === 'settled').filter(({ ticketId }) => !ticketId.includes('@'))

const sentAway = (entries: readonly Entry[]) =>
  entries.filter((entry) => entry.kind === 'admitted').filter(({ poolId }) => poolId === 'us:m')

describe('a request that is refused here', { timeout: 120_000 }, () => {
  it('is served by a region that has room, and the journal says why it was sent there', async () => {
    const { entries, report } = await journalOf(scenario([crowd]), { seed: 1 })
    const away = sentAway(entries)
    expect(away.length).toBeGreaterThan(100)
    for (const { because } of away) expect(because).toMatch(/^refused here \(predicted-late\), sent to us: /)
    const settled = clientsOf(entries)
    const served = settled.filter(({ outcome, poolId }) => outcome === 'completed' && poolId === 'us:m')
    expect(served.length).toBeGreaterThan(away.length * 0.95)
    // What one replica cannot do is not refused while four others are idle.
    expect(report.requests.rejected).toBeLessThan(report.requests.arrived * 0.02)
    expect(report.laws).toEqual([])
  })

  it('is refused for good when the other region has no room either', async () => {
    const crowds = ['eu', 'us'].map((region) => ({
      ...crowd,
      region,
      arrivals: { kind: 'poisson' as const, ratePerS: 300 },
    }))
    const { entries } = await journalOf(scenario(crowds), { seed: 1 })
    const refused = clientsOf(entries).filter(({ outcome }) => outcome === 'rejected')
    expect(refused.length).toBeGreaterThan(100)
    for (const { refusal } of refused) expect(refusal?.code).toMatch(/predicted-late|queue-full|lane/)
  })
})
