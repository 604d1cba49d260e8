import { describe, expect, it } from 'vitest'
import type { CostClosed, SecondClosed } from '../domain/cost-entry.ts'
import { NO_ENGINE_TIME } from '../domain/engine-time.ts'
import { Metrics } from './metrics.ts'

const SECOND: SecondClosed = {
  kind: 'second-closed',
  at: 1_000_000,
  replicaId: 'r',
  poolId: 'pool',
  fromAt: 0,
  toAt: 1_000_000,
  billedSince: 0,
  nanoPerHour: 3_600_000_000,
  billNano: 1_000_000,
  busyUs: 250_000,
  isMeasured: true,
  tenants: [{ tenantId: 'acme', usedNano: 250_000, idleNano: 50_000 }],
  lines: { idleNano: 600_000, wasteNano: 100_000, platformNano: 0, crashedNano: 0, lateNano: 0 },
}

const COST: CostClosed = {
  kind: 'cost-closed',
  at: 1_000_000,
  ticketId: 't',
  tenantId: 'acme',
  isErrand: false,
  costNano: 250_000,
  wasteNano: 0,
  batchSavedNano: 750_000,
  prefixSavedNano: 10_000,
  time: { ...NO_ENGINE_TIME, decodeUs: 250_000, kvTokenUs: 4_000_000 },
  isMeasured: true,
  isPriced: true,
}

function textAfter(...entries: readonly (SecondClosed | CostClosed)[]): string {
  const metrics = new Metrics({ version: '1', nodeVersion: '26' })
  for (const entry of entries) metrics.take(entry)
  return metrics.text()
}

describe('the metrics of cost', () => {
  it('count what tenants and the platform pay, what was saved, and how busy the pool is', () => {
    const text = textAfter(SECOND, COST)
    expect(text).toContain('spillway_cost_usd_total{tenant="acme",kind="used"} 0.00025')
    expect(text).toContain('spillway_cost_usd_total{tenant="acme",kind="idle"} 0.00005')
    expect(text).toContain('spillway_platform_cost_usd_total{pool="pool",line="idle"} 0.0006')
    expect(text).toContain('spillway_platform_cost_usd_total{pool="pool",line="waste"} 0.0001')
    expect(text).not.toContain('line="crashed"')
    expect(text).toContain('spillway_bill_usd_total{pool="pool"} 0.001')
    expect(text).toContain('spillway_gpu_busy_ratio{pool="pool"} 0.25')
    expect(text).toContain('spillway_saved_usd_total{by="batching"} 0.00075')
    expect(text).toContain('spillway_kv_token_seconds_total{tenant="acme"} 4')
  })

  it('count no money where no price is known', () => {
    expect(textAfter({ ...COST, isPriced: false, costNano: 0 })).not.toContain('spillway_cost_usd_total{')
  })
})
