import type { Request } from '../../src/domain/request.ts'
import type { Key, Tenant } from '../../src/domain/tenant.ts'
import { MODEL } from './start-platform.ts'

/** Requests as the gateway would make them, with whatever the test cares about put in its place. */
export const ACME: Tenant = {
  id: 'acme',
  orgId: 'acme',
  weight: 1,
  slo: { name: 'patient', ttftUs: 10_000_000, interTokenUs: 250_000, totalUs: 600_000_000 },
  bands: ['interactive', 'standard', 'offline'],
  allowance: {},
  bidMax: 0,
  contract: 'degrade',
  queueUsMax: 30_000_000,
}

export const ACME_KEY_1: Key = { id: 'acme-1', tenantId: 'acme', weight: 1, allowance: {} }

export function makeRequest(overrides: Partial<Request> = {}): Request {
  const arrivedAt = overrides.arrivedAt ?? 0
  return {
    id: 'req_1',
    tenant: ACME,
    key: ACME_KEY_1,
    kind: 'chat',
    model: MODEL,
    segments: [{ role: 'user', tokens: 20 }],
    prefixHashes: [],
    outputTokensMax: 100,
    choiceCount: 1,
    isStreamed: true,
    band: 'standard',
    bid: 0,
    slo: ACME.slo,
    arrivedAt,
    deadlineAt: arrivedAt + ACME.slo.totalUs,
    text: undefined,
    ...overrides,
  }
}
