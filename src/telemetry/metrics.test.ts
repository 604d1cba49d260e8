import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { arrived, fault, refused, settled, story } from '../../test/support/entries.ts'
import { missing } from '../../test/support/installed.ts'
import { parseExposition, sampleValue } from '../../test/support/parse-exposition.ts'
import type { Entry } from '../domain/entry.ts'
import { GAP_BUCKETS_US } from '../domain/gaps.ts'
import { LiveJournal } from './journal.ts'
import { makeProcessSampler } from './live-process.ts'
import { Metrics, type MetricsOptions } from './metrics.ts'

function makeMetrics(entries: readonly Entry[], options: Partial<MetricsOptions> = {}): Metrics {
  const metrics = new Metrics({ version: '0.1.0', nodeVersion: 'v26', ...options })
  for (const entry of entries) metrics.take(entry)
  return metrics
}

const MODEL_BAND = { model: 'llama-8b', band: 'interactive' }

describe('Metrics', () => {
  it('tells one request in all its numbers', () => {
    const text = makeMetrics(story()).text()
    const value = (name: string, labels: Record<string, string> = MODEL_BAND) => sampleValue(text, name, labels)
    const requests = { tenant: 'acme', model: 'llama-8b', outcome: 'completed', code: 'none' }
    expect(value('spillway_requests_total', requests)).toBe(1)
    const tokens = (kind: string) => value('spillway_tokens_total', { tenant: 'acme', model: 'llama-8b', kind })
    expect([tokens('prompt'), tokens('cached'), tokens('output')]).toEqual([100, 40, 10])
    expect(value('spillway_request_duration_seconds_sum', { ...MODEL_BAND, outcome: 'completed' })).toBe(1)
    expect(value('spillway_time_to_first_token_seconds_sum')).toBe(0.5)
    expect(value('spillway_queue_wait_seconds_sum')).toBe(0.25)
    expect(value('spillway_prefill_seconds_sum')).toBe(0.25)
    expect(value('spillway_decode_seconds_sum')).toBe(0.225)
    expect(value('spillway_inter_token_seconds_sum')).toBe(0.225)
    expect(value('spillway_inter_token_seconds_count')).toBe(9)
    expect(value('spillway_inter_token_seconds_bucket', { ...MODEL_BAND, le: '0.02' })).toBe(0)
    expect(value('spillway_inter_token_seconds_bucket', { ...MODEL_BAND, le: '0.03' })).toBe(9)
    expect(value('spillway_attempts_total', { replica: 'replica-1', ending: 'finished' })).toBe(1)
    expect(value('spillway_requests_in_flight', {})).toBe(0)
  })

  it('counts a refusal by its code and gives it no token times', () => {
    const text = makeMetrics([arrived(), refused()]).text()
    const labels = { tenant: 'acme', model: 'llama-8b', outcome: 'rejected', code: 'lane-full' }
    expect(sampleValue(text, 'spillway_requests_total', labels)).toBe(1)
    expect(sampleValue(text, 'spillway_time_to_first_token_seconds_count', MODEL_BAND)).toBeUndefined()
    expect(sampleValue(text, 'spillway_queue_wait_seconds_count', MODEL_BAND)).toBeUndefined()
  })

  it('counts the wait of those who never got a turn', () => {
    const text = makeMetrics([arrived(), refused({ outcome: 'expired', admittedAt: 1_000_000, at: 4_000_000 })]).text()
    expect(sampleValue(text, 'spillway_queue_wait_seconds_sum', MODEL_BAND)).toBe(3)
  })

  it('books engine times and tokens on the model that answered, and the request on the one that was asked for', () => {
    const text = makeMetrics([settled({ servedModel: 'tiny' })]).text()
    expect(sampleValue(text, 'spillway_tokens_total', { tenant: 'acme', model: 'tiny', kind: 'output' })).toBe(10)
    expect(sampleValue(text, 'spillway_prefill_seconds_count', { model: 'tiny', band: 'interactive' })).toBe(1)
    expect(sampleValue(text, 'spillway_time_to_first_token_seconds_count', MODEL_BAND)).toBe(1)
  })

  it('knows what is in flight, and forgets in time what the journal lost', () => {
    const metrics = makeMetrics([arrived({ ticketId: 'a' }), arrived({ ticketId: 'b' }), settled({ ticketId: 'a' })])
    const inFlight = () => sampleValue(metrics.text(), 'spillway_requests_in_flight')
    expect(inFlight()).toBe(1)
    metrics.take(settled({ ticketId: 'never heard of' }))
    expect(inFlight()).toBe(1)
    metrics.take(arrived({ ticketId: 'c', at: 2 * 3_600_000_000 }))
    expect(inFlight()).toBe(1)
  })

  it('shows the journal’s losses, replicas and faults', () => {
    const journal = new LiveJournal()
    journal.subscribe({ name: 'log', take: () => {} }, 1)
    for (let i = 0; i < 3; i++) journal.record(arrived())
    const report = { kind: 'replica-reported', at: 1, replicaId: 'replica-1', isReady: true, because: 'ok' } as const
    const text = makeMetrics([fault(), fault({ where: 'store' }), report], { journal }).text()
    expect(sampleValue(text, 'spillway_journal_dropped_total', { subscriber: 'log' })).toBe(2)
    expect(sampleValue(text, 'spillway_faults_total', { where: 'store' })).toBe(1)
    expect(sampleValue(text, 'spillway_replica_ready', { replica: 'replica-1' })).toBe(1)
    expect(sampleValue(text, 'spillway_build_info', { version: '0.1.0', node: 'v26' })).toBe(1)
  })

  it('counts the replicas that are denied, until they answer again or are gone', () => {
    const denial = (replicaId: string, isDenied: boolean): Entry => ({
      kind: 'replica-denied',
      at: 1,
      replicaId,
      poolId: 'pool-1',
      isDenied,
      because: 'The engine answered 401: it does not accept our key.',
    })
    const metrics = makeMetrics([denial('r1', true), denial('r2', true), denial('r2', true)])
    const deniedCount = (): number | undefined =>
      parseExposition(metrics.text())
        .get('spillway_replica_denied')
        ?.samples.reduce((sum, { value }) => sum + value, 0)
    expect(sampleValue(metrics.text(), 'spillway_replica_denied', { replica: 'r1', pool: 'pool-1' })).toBe(1)
    expect(deniedCount()).toBe(2)
    metrics.take(denial('r1', false))
    expect(deniedCount()).toBe(1)
    metrics.take({
      kind: 'fleet-changed',
      at: 2,
      what: 'replica-removed',
      name: 'r2',
      poolId: 'pool-1',
      by: 'a',
      because: '',
    })
    expect(deniedCount()).toBe(0)
    expect(metrics.text()).not.toContain('replica="r2"')
  })

  it('ignores kinds that it does not know', () => {
    const stranger = { kind: 'not-yet-invented', at: 1 } as unknown as Entry
    expect(() => makeMetrics([stranger]).text()).not.toThrow()
  })

  it('keeps ten thousand tenants within the bound, and loses none of their requests', () => {
    const entries = Array.from({ length: 10_000 }, (_, i) => settled({ ticketId: `t${i}`, tenantId: `tenant-${i}` }))
    const text = makeMetrics(entries, { tenants: { namedMax: 20 } }).text()
    const samples = parseExposition(text).get('spillway_requests_total')?.samples ?? []
    expect(samples.length).toBe(21)
    expect(samples.reduce((sum, sample) => sum + sample.value, 0)).toBe(10_000)
  })

  it('never lets a counter go back while tenants trade names, and drops the series of those who lost theirs', () => {
    const metrics = makeMetrics([], { tenants: { namedMax: 2 } })
    const before = new Map<string, number>()
    const seen = new Set<string>()
    for (let minute = 0; minute < 180; minute++) {
      // Every half hour another tenant is the busy one.
      for (let i = 0; i < 20; i++)
        metrics.take(settled({ at: minute * 60_000_000, tenantId: `t${Math.trunc(minute / 30)}` }))
      const families = parseExposition(metrics.text())
      const samples = ['spillway_requests_total', 'spillway_tokens_total'].flatMap(
        (name) => families.get(name)?.samples ?? [],
      )
      const tenants = new Set(samples.map((sample) => sample.labels['tenant'] ?? ''))
      expect(tenants.size).toBeLessThanOrEqual(2 + 1 + 1)
      for (const tenant of tenants) seen.add(tenant)
      for (const { name, labels, value } of samples) {
        const series = `${name} ${JSON.stringify(labels)}`
        expect(value).toBeGreaterThanOrEqual(before.get(series) ?? 0)
        before.set(series, value)
      }
    }
    expect(seen).toEqual(new Set(['t0', 't1', 't2', 't3', 't4', 't5', 'other']))
  })

  it('has the gap buckets of the domain', () => {
    const family = parseExposition(makeMetrics(story()).text()).get('spillway_inter_token_seconds')
    const bounds = family?.samples
      .filter((sample) => 'le' in sample.labels)
      .map((sample) => Number(sample.labels['le']))
    expect(bounds?.slice(0, -1)).toEqual(GAP_BUCKETS_US.map((us) => us / 1e6))
  })

  it('survives a process sampler that fails', () => {
    const sampleProcess = () => {
      throw new Error('no /proc here')
    }
    expect(sampleValue(makeMetrics(story(), { sampleProcess }).text(), 'spillway_requests_in_flight')).toBe(0)
  })
})

/** Everything there is, with label values that are hard to spell. */
function everything(): string {
  const journal = new LiveJournal()
  journal.subscribe({ name: 'log', take: () => {} })
  const nasty = settled({ tenantId: 'a"b\\c\nd', model: 'é𝄞{}=,', servedModel: '#x' })
  return makeMetrics([...story(), arrived({ ticketId: 'open' }), ...story(nasty), refused(), fault()], {
    journal,
    sampleProcess: makeProcessSampler(),
  }).text()
}

describe('the exposition', () => {
  it('is read back by a strict parser', () => {
    const families = parseExposition(everything())
    expect(families.size).toBeGreaterThan(15)
    const tenants = families.get('spillway_requests_total')?.samples.map((sample) => sample.labels['tenant'])
    expect(tenants).toContain('a"b\\c\nd')
    for (const family of families.values()) expect(family.help).not.toBe('')
  })

  it('passes promtool check metrics', ({ skip }) => {
    const why = missing('promtool')
    skip(why !== undefined, why)
    const check = spawnSync('promtool', ['check', 'metrics'], { input: everything(), encoding: 'utf8' })
    expect(check).toMatchObject({ stdout: '', stderr: '', status: 0 })
  })
})
