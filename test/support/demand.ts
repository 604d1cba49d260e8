import type { Estimate } from '../../src/domain/plan.ts'
import type { Key, Slo, Tenant } from '../../src/domain/tenant.ts'

/** Demand for tests and benches: tenants, keys and estimates with every field filled and only the interesting ones named. */
const SLO: Slo = { name: 'test', ttftUs: 2_000_000, interTokenUs: 50_000, totalUs: 60_000_000 }

export function makeTenant(id: string, over: Partial<Tenant> = {}): Tenant {
  return {
    id,
    orgId: id,
    weight: 1,
    slo: SLO,
    bands: ['interactive', 'standard', 'offline'],
    allowance: {},
    bidMax: 10,
    contract: 'degrade',
    queueUsMax: 60_000_000,
    ...over,
  }
}

export function makeKey(id: string, tenantId: string, weight = 1): Key {
  return { id, tenantId, weight, allowance: {} }
}

/** An answer of `output` tokens to a prompt of `prompt`, in weighted tokens with 4 for an output token. */
export function makeEstimate(prompt: number, output: number, over: Partial<Estimate> = {}): Estimate {
  return {
    promptTokens: prompt,
    cachedTokens: 0,
    outputTokens: output,
    outputTokensHigh: output,
    cost: prompt + 4 * output,
    engineUs: 1_000 * (prompt / 10 + 20 * output),
    ...over,
  }
}
