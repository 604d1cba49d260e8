import { expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { sampleValue } from '../../test/support/parse-exposition.ts'
import type { Entry } from '../domain/entry.ts'
import { Metrics } from './metrics.ts'

const MIB = 2 ** 20

function textAfter(...entries: readonly Entry[]): string {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of entries) metrics.take(entry)
  return metrics.text()
}

it('tells GPU memory per request, by pool, and nothing where it is unknown', () => {
  const text = textAfter(settled({ kvBytes: 3 * MIB }), settled({ kvBytes: 300 * MIB }), settled())
  const value = (name: string, labels = {}) =>
    sampleValue(text, `spillway_request_kv_bytes_${name}`, { pool: 'pool-1', ...labels })
  expect(value('count')).toBe(2)
  expect(value('sum')).toBe(303 * MIB)
  expect(value('bucket', { le: `${4 * MIB}` })).toBe(1)
  expect(value('bucket', { le: `${1_024 * MIB}` })).toBe(2)
})

it('goes with its pool', () => {
  const gone = { kind: 'fleet-changed', at: 5, what: 'pool-removed', name: 'pool-1' } as Entry
  expect(textAfter(settled({ kvBytes: MIB }), gone)).not.toContain('spillway_request_kv_bytes_count{')
})
