import { expect, it } from 'vitest'
import type { FleetChanged } from '../domain/entry.ts'
import { Lingering } from './lingering.ts'
import { Metrics } from './metrics.ts'

const MINUTE_US = 60_000_000

const changed = (what: FleetChanged['what'], name: string, at: number): FleetChanged => ({
  kind: 'fleet-changed',
  at,
  what,
  name,
  poolId: 'p',
  by: 'ada',
  because: 'a test',
})

it('forgets after the grace, oldest first, and not what came back', () => {
  const forgotten: string[] = []
  const lingering = new Lingering((label) => forgotten.push(label))
  lingering.gone('a', 0)
  lingering.gone('b', MINUTE_US)
  lingering.back('b')
  lingering.gone('c', 9 * MINUTE_US)
  expect(forgotten).toEqual([])
  lingering.gone('d', 11 * MINUTE_US)
  expect(forgotten).toEqual(['a'])
})

it('is bounded, however many go at once', () => {
  const forgotten: string[] = []
  const lingering = new Lingering((label) => forgotten.push(label))
  for (let i = 0; i < 1_000; i++) lingering.gone(`r${i}`, 0)
  expect(lingering.size).toBe(100)
  expect(forgotten[0]).toBe('r0')
})

it('a removed replica has no gauge at once, and its counters until the last scrape has seen them', () => {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  metrics.take({ kind: 'replica-reported', at: 0, replicaId: 'r0', isReady: true, because: 'ready' })
  metrics.take({
    kind: 'attempt-ended',
    at: 0,
    ticketId: 't',
    releaseId: 'm@1',
    replicaId: 'r0',
    attempt: 1,
    ending: 'finished',
    because: 'finished',
    unpaidCost: 0,
  })
  metrics.take(changed('replica-removed', 'r0', 1))
  expect(metrics.text()).not.toContain('spillway_replica_ready{replica="r0"}')
  expect(metrics.text()).toContain('spillway_attempts_total{replica="r0",ending="finished"} 1')
  metrics.take(changed('replica-removed', 'r1', 20 * MINUTE_US))
  expect(metrics.text()).not.toContain('r0')
  expect(metrics.text()).toContain('spillway_fleet_changes_total{what="replica-removed"} 2')
})

it('a removed pool has no series left but those that linger', () => {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  const seriesOf = (): string[] =>
    metrics
      .text()
      .split('\n')
      .filter((line) => line.includes('pool="p"'))
  metrics.take({
    kind: 'offline-shedding-changed',
    at: 0,
    poolId: 'p',
    isShed: true,
    pressure: 2,
    because: 'a test',
  })
  expect(seriesOf()).toHaveLength(1)
  metrics.take(changed('pool-removed', 'p', 1))
  expect(seriesOf()).toEqual([])
})
