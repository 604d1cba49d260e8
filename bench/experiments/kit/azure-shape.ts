import type { Scenario } from '../../../src/sim/scenario/scenario.ts'

/** Chats with the lengths and the burstiness of Azure's conversations, from eight tenants or more, on four replicas. */
export const azureShape = (durationS: number, ratePerS: number, tenantCount = 8): Scenario => ({
  name: 'azure-conv-shape',
  about: '',
  durationS,
  platform: {
    models: [{ name: 'large', fallback: 'small' }, { name: 'small' }],
    pools: [
      { model: 'large', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 4 },
      { model: 'small', backend: { kind: 'simulated', profile: 'h200-llama-1b' } },
    ],
    tenants: Array.from({ length: tenantCount }, (_, i) => ({ id: `t${i}`, weight: 1 + (i % 3), slo: 'steady' })),
  },
  workload: Array.from({ length: tenantCount }, (_, i) => ({
    tenant: `t${i}`,
    model: 'large',
    arrivals: { kind: 'gamma', ratePerS: ratePerS / tenantCount, cv: 1.1 },
    prompt: {
      kind: 'quantiles',
      points: [
        [0, 16],
        [0.5, 1_020],
        [0.9, 2_734],
        [0.99, 4_142],
        [1, 6_000],
      ],
    },
    output: {
      kind: 'quantiles',
      points: [
        [0, 8],
        [0.5, 129],
        [0.9, 424],
        [0.99, 601],
        [1, 800],
      ],
    },
  })),
})
