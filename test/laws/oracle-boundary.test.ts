import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/domain/entry.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from '../support/simulated.ts'

/**
 * Law L10: nobody but the engine and the client's script knows how long an answer will be. Two runs that differ in
 * the true lengths alone must be the same, decision for decision, until the first answer of another length shows it.
 */
function scenarioOf(outputTokens: number, hidden: boolean): Scenario {
  return {
    name: 'oracle-boundary',
    about: '',
    durationS: 12,
    platform: {
      models: [{ name: 'large' }],
      pools: [{ model: 'large', backend: { kind: 'simulated', profile: 'h100-llama-8b', hidden } }],
      tenants: [
        { id: 'known', slo: 'steady' },
        { id: 'secret', slo: 'fast' },
      ],
    },
    workload: [
      {
        tenant: 'known',
        model: 'large',
        arrivals: { kind: 'poisson', ratePerS: 20 },
        prompt: { kind: 'uniform', min: 100, max: 2_000 },
        output: { kind: 'uniform', min: 10, max: 100 },
      },
      {
        tenant: 'secret',
        model: 'large',
        fromS: 6,
        arrivals: { kind: 'poisson', ratePerS: 40 },
        prompt: { kind: 'uniform', min: 100, max: 2_000 },
        output: { kind: 'fixed', tokens: outputTokens },
      },
    ],
  }
}

const isTold = (entry: Entry): boolean =>
  entry.kind === 'settled' && entry.tenantId === 'secret' && entry.usage.outputTokens > 0

describe('the oracle boundary', () => {
  // A hidden engine is learned from its answers: its twin too hears of a length only when the answer ends.
  it.each([false, true])('true lengths change nothing before they show (hidden engine: %s)', async (hidden) => {
    const short = await journalOf(scenarioOf(60, hidden), { seed: 5 })
    const long = await journalOf(scenarioOf(900, hidden), { seed: 5 })
    const toldAt = short.entries.find(isTold)?.at ?? 0
    const untilTold = (entries: readonly Entry[]): string[] =>
      entries.filter(({ at }) => at < toldAt).map((entry) => JSON.stringify(entry))
    expect(untilTold(long.entries)).toEqual(untilTold(short.entries))
    const decided = short.entries.filter(
      (entry) => entry.kind === 'admitted' && entry.tenantId === 'secret' && entry.at < toldAt,
    )
    expect(decided.length).toBeGreaterThan(10)
    expect(long.report.tokens.output).toBeGreaterThan(short.report.tokens.output)
  })
})
