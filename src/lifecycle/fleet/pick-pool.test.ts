import { describe, expect, it } from 'vitest'
import { journalOf } from '../../../test/support/simulated.ts'
import type { Entry } from '../../domain/entry.ts'
import { WEIGHT_DEFAULTS } from '../../policy/routing/scorers/scorers.ts'
import type { Scenario, StreamSpec } from '../../sim/scenario/scenario.ts'

const stream = (tenant: string, over: Partial<StreamSpec> = {}): StreamSpec => ({
  tenant,
  model: 'm',
  arrivals: { kind: 'poisson', ratePerS: 5 },
  prompt: { kind: 'fixed', tokens: 200 },
  output: { kind: 'fixed', tokens: 20 },
  ...over,
})

const backend = { kind: 'simulated', profile: 'h100-llama-8b' }

const scenario = (platform: Record<string, unknown>, workload: StreamSpec[]): Scenario => ({
  name: 'pools',
  about: 'made up',
  durationS: 10,
  platform: { models: [{ name: 'm' }], ...platform },
  workload,
})

const outcomesOf = (entries: readonly Entry[], tenantId: string) =>
  new Set(
    entries.flatMap((entry) =>
      entry.kind === 'settled' && entry.tenantId === tenantId ? [`${entry.outcome} ${entry.poolId}`] : [],
    ),
  )

describe('dedicated pools', () => {
  it('serve their tenants and nobody else, and the others share the rest', async () => {
    const { entries } = await journalOf(
      scenario(
        {
          tenants: [{ id: 'a' }, { id: 'b' }],
          pools: [
            { id: 'own', model: 'm', backend, dedicatedTo: ['b'] },
            { id: 'shared', model: 'm', backend },
          ],
        },
        [stream('a'), stream('b')],
      ),
      { seed: 1 },
    )
    expect(outcomesOf(entries, 'a')).toEqual(new Set(['completed shared']))
    expect(outcomesOf(entries, 'b')).toEqual(new Set(['completed own']))
  })

  it('refuse a stranger even when there is no other pool', async () => {
    const { entries } = await journalOf(
      scenario(
        { tenants: [{ id: 'a' }, { id: 'b' }], pools: [{ id: 'own', model: 'm', backend, dedicatedTo: ['b'] }] },
        [stream('a')],
      ),
      { seed: 1 },
    )
    expect(outcomesOf(entries, 'a')).toEqual(new Set(['rejected undefined']))
  })
})

describe('a placement', () => {
  it('explains itself in the journal: its reason, and parts that are predictions', async () => {
    const { entries } = await journalOf(
      scenario({ tenants: [{ id: 'a' }], pools: [{ model: 'm', backend, replicas: 3 }] }, [
        stream('a', { prompt: { kind: 'fixed', tokens: 4_000 }, prefix: { tokens: 3_200, groups: 2, ratio: 1 } }),
      ]),
      { seed: 1 },
    )
    const granted = entries.filter((entry) => entry.kind === 'granted')
    const held = granted.filter(({ placement }) => (placement?.cachedTokens ?? 0) >= 3_000)
    expect(held.length).toBeGreaterThan(granted.length / 2)
    for (const { because, placement } of held) {
      expect(because).toBe('soonest first token: it holds the beginning of the prompt')
      expect(placement).toMatchObject({ roomCount: 3, scoredCount: 3 })
      expect(Object.keys(placement!.partsUs)).toEqual(Object.keys(WEIGHT_DEFAULTS))
    }
  })

  it('follows the weights and the rule that are configured', async () => {
    const run = async (routing: object) => {
      const platform = { tenants: [{ id: 'a' }], pools: [{ model: 'm', backend, replicas: 2 }], routing }
      const prefix = { tokens: 160, groups: 1, ratio: 1 }
      const { entries } = await journalOf(scenario(platform, [stream('a', { prefix })]), { seed: 1 })
      return entries.filter((entry) => entry.kind === 'granted').map(({ replicaId }) => replicaId)
    }
    expect(new Set(await run({ weights: { load: 0 } }))).toEqual(new Set(['m-local-0']))
    const inTurn = await run({ rule: 'round-robin' })
    expect(inTurn.slice(0, 6)).toEqual([0, 1, 0, 1, 0, 1].map((i) => `m-local-${i}`))
  })
})
