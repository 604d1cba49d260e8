import { expect, it } from 'vitest'
import { sampleValue } from '../../test/support/parse-exposition.ts'
import type { CostClosed } from '../domain/cost-entry.ts'
import { NO_ENGINE_TIME } from '../domain/engine-time.ts'
import { Metrics } from './metrics.ts'

const closed = (time: Partial<CostClosed['time']>, isMeasured = true): CostClosed => ({
  kind: 'cost-closed',
  at: 1,
  ticketId: 'req_1',
  tenantId: 'acme',
  isErrand: false,
  costNano: 0,
  wasteNano: 0,
  batchSavedNano: 0,
  prefixSavedNano: 0,
  time: { ...NO_ENGINE_TIME, ...time },
  isMeasured,
  isPriced: true,
})

it('tells engine time by phase, and what was measured from what was estimated', () => {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  metrics.take(closed({ prefillUs: 250_000, decodeUs: 1_500_000 }))
  metrics.take(closed({ prefillUs: 250_000, againUs: 250_000 }))
  metrics.take(closed({ decodeUs: 2_000_000 }, false))
  const text = metrics.text()
  const value = (phase: string, source: string) => sampleValue(text, 'spillway_engine_seconds_total', { phase, source })
  expect([value('prefill', 'measured'), value('decode', 'measured'), value('again', 'measured')]).toEqual([
    0.5, 1.5, 0.25,
  ])
  expect(value('decode', 'estimated')).toBe(2)
  expect(value('prefill', 'estimated')).toBeUndefined()
})
