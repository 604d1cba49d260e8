import { describe, expect, it } from 'vitest'
import { journalOf } from '../../../test/support/simulated.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Fault, Scenario, StreamSpec } from '../../sim/scenario/scenario.ts'

const chat: StreamSpec = {
  tenant: 'a',
  region: 'eu',
  model: 'm',
  arrivals: { kind: 'poisson', ratePerS: 20 },
  prompt: { kind: 'fixed', tokens: 1_000 },
  output: { kind: 'fixed', tokens: 100 },
}

/** Two gateways, two replicas each, 60 ms apart. */
const scenario = (faults: Fault[], over: Partial<StreamSpec> = {}, limit: object = { kind: 'auto' }): Scenario => ({
  name: 'two-regions',
  about: 'made up',
  durationS: 60,
  regions: { roundTrips: [{ between: ['eu', 'us'], ms: 60 }] },
  platform: {
    models: [{ name: 'm' }],
    pools: ['eu', 'us'].map((region) => ({
      model: 'm',
      region,
      replicas: 2,
      limit,
      backend: { kind: 'simulated', profile: 'h100-llama-8b' },
    })),
    tenants: [{ id: 'a' }],
    regions: { returnMs: 10_000 },
    ladder: { enabled: false },
  },
  workload: [{ ...chat, ...over }],
  faults,
})

const run = (...of: Parameters<typeof scenario>) => journalOf(scenario(...of), { seed: 1 })

/** Of clients, not of gateways. */
const settledOf = (entries: readonly Entry[]): Settled[] =>
  entries.filter((entry) => entry.kind === 'settled').filter(({ ticketId }) => !ticketId.includes('@'))

const shareThere = (settled: readonly Settled[], fromS: number, toS: number): number => {
  const some = settled.filter(({ arrivedAt }) => arrivedAt >= fromS * 1e6 && arrivedAt < toS * 1e6)
  return some.filter(({ poolId }) => poolId === 'us:m').length / some.length
}

/** Thousands of requests each: seconds on a quiet machine, a minute on a busy one. */
describe('two regions', { timeout: 120_000 }, () => {
  it('keep to themselves while nothing is the matter', async () => {
    const { entries, report } = await run([])
    expect(new Set(settledOf(entries).map(({ poolId }) => poolId))).toEqual(new Set(['m-eu']))
    expect(report.goodput.ratio).toBe(1)
  })

  it('fail over when the local replicas are lost, and take their traffic back little by little', async () => {
    const { entries } = await run([{ kind: 'pool-loss', target: 'm-eu', atS: 20, forS: 15 }])
    const settled = settledOf(entries)
    expect(shareThere(settled, 0, 19)).toBe(0)
    expect(shareThere(settled, 22, 35)).toBe(1)
    // It is noticed within a tick that they are back; ten seconds later all is as before.
    expect(shareThere(settled, 36, 39)).toBeGreaterThan(shareThere(settled, 42, 45))
    expect(shareThere(settled, 42, 45)).toBeGreaterThan(0)
    expect(shareThere(settled, 48, 60)).toBe(0)
    // Only who had seen a token of a lost replica's may fail.
    for (const { outcome, firstTokenAt } of settled)
      if (outcome !== 'completed') expect([outcome, firstTokenAt === undefined]).toEqual(['failed', false])
  })

  it('move those who wait when the last replica of their pool goes', async () => {
    const one = { kind: 'fixed', concurrencyMax: 1 }
    const { entries } = await run(
      [{ kind: 'pool-loss', target: 'm-eu', atS: 20, forS: 30 }],
      { deadlineMs: 40_000, arrivals: { kind: 'closed', sessions: 8, thinkS: 0.01 } },
      one,
    )
    const settled = settledOf(entries)
    const before = settled.filter(({ arrivedAt }) => arrivedAt < 20e6)
    const moved = before.filter(({ poolId, attempts }) => poolId === 'us:m' && attempts > 0)
    expect(moved.length).toBeGreaterThan(0)
    for (const { outcome } of moved) expect(outcome).toBe('completed')
    // Two were in the middle of their answers.
    expect(before.filter(({ outcome }) => outcome === 'failed').length).toBeLessThanOrEqual(2)
  })

  it('send a request on only once, with the time that it has left', async () => {
    const both = { arrivals: { kind: 'poisson', ratePerS: 400 } } as const
    const two = scenario([], both)
    const { entries } = await journalOf(
      { ...two, durationS: 5, workload: ['eu', 'us'].map((region) => ({ ...chat, ...both, region })) },
      { seed: 1 },
    )
    const sentOn = entries.filter((entry) => entry.kind === 'arrived' && entry.origin !== undefined)
    expect(sentOn.length).toBeGreaterThan(10)
    for (const entry of entries) {
      if (!('ticketId' in entry) || !entry.ticketId?.includes('@')) continue
      expect(entry.ticketId.split('@')).toHaveLength(2)
      if (entry.kind === 'settled') expect(entry.poolId ?? 'refused').not.toContain(':')
    }
  })
})
