import { describe, expect, it } from 'vitest'
import type { Entry } from '../domain/entry.ts'
import type { Report } from './report/report.ts'
import type { Scenario } from './scenario/scenario.ts'
import { simulate } from './simulate.ts'

const LENGTHS = {
  prompt: { kind: 'uniform', min: 100, max: 1_000 },
  output: { kind: 'uniform', min: 20, max: 200 },
} as const

const scenarioOf = (autoscale: object, more: Partial<Scenario>): Scenario => ({
  name: 'autoscale',
  about: '',
  durationS: 300,
  coldStartS: 20,
  platform: {
    models: [{ name: 'chat' }],
    pools: [{ model: 'chat', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 1, autoscale }],
    slos: [{ name: 'chat', ttftMs: 2_000, interTokenMs: 50, totalMs: 60_000 }],
    tenants: [
      { id: 'patient', slo: 'chat' },
      { id: 'hasty', slo: 'chat' },
    ],
  },
  workload: [],
  ...more,
})

async function play(scenario: Scenario, seed = 1): Promise<{ report: Report; entries: Entry[] }> {
  const entries: Entry[] = []
  const report = await simulate(scenario, { seed, onEntry: (entry) => void entries.push(entry) })
  expect(report.laws).toEqual([])
  return { report, entries }
}

const ordersOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.kind === 'scale-ordered' ? [entry] : []))

describe('a pool that sleeps', () => {
  const asleep = scenarioOf(
    { writer: 'spillway', minWarm: 0, max: 4, idleToZeroMs: 30_000, coldStartMs: 25_000 },
    {
      workload: [
        {
          tenant: 'patient',
          model: 'chat',
          arrivals: { kind: 'poisson', ratePerS: 10 },
          fromS: 120,
          toS: 150,
          ...LENGTHS,
        },
        {
          tenant: 'hasty',
          model: 'chat',
          arrivals: { kind: 'poisson', ratePerS: 5 },
          fromS: 120,
          toS: 125,
          deadlineMs: 5_000,
          ...LENGTHS,
        },
      ],
    },
  )

  it('is woken by one order at once, and those who can wait are answered', async () => {
    const { entries } = await play(asleep)
    const orders = ordersOf(entries)
    expect(orders.map(({ from, to, outcome }) => [from, to, outcome])).toEqual([
      [1, 0, 'done'],
      [0, 1, 'done'],
      [1, 0, 'done'],
    ])
    const first = entries.find((entry) => entry.kind === 'arrived' && entry.at > 100_000_000)
    expect((orders[1]?.at ?? 0) - (first?.at ?? 0)).toBeLessThanOrEqual(100_000)
    const wokenAt = orders[1]?.at ?? 0
    const readyAt = entries.find(
      (entry) => entry.kind === 'replica-reported' && entry.isReady && entry.at > wokenAt,
    )?.at
    const waited = entries.filter(
      (entry) => entry.kind === 'settled' && entry.tenantId === 'patient' && entry.arrivedAt < (readyAt ?? 0),
    )
    expect(waited.length).toBeGreaterThan(100)
    // From then on the promise of a first token counts again, and some newcomers are told that the queue is long.
    expect(waited.every((entry) => entry.kind === 'settled' && entry.outcome === 'completed')).toBe(true)
  })

  it('tells those who cannot wait when to come back, by the cold start', async () => {
    const { entries } = await play(asleep)
    const refused = entries.flatMap((entry) =>
      entry.kind === 'settled' && entry.tenantId === 'hasty' && entry.refusal !== undefined ? [entry] : [],
    )
    expect(refused.length).toBeGreaterThan(5)
    for (const { at, refusal } of refused) {
      expect(refusal).toMatchObject({ code: 'predicted-late', blame: 'platform' })
      const leftUs = 145_000_000 - at
      // 25 s by the settings, less what has passed; a fifth of jitter is added.
      expect(refusal?.retryAfterUs).toBeGreaterThan(0.8 * leftUs)
      expect(refusal?.retryAfterUs).toBeLessThan(1.5 * leftUs + 1_000_000)
    }
  })

  it('is not waited for where orders are only journalled', async () => {
    const pool = (asleep.platform as { pools: object[] }).pools[0] as { autoscale: object }
    const dry = {
      ...asleep,
      platform: { ...asleep.platform, pools: [{ ...pool, autoscale: { ...pool.autoscale, dryRun: true } }] },
    }
    const { report, entries } = await play(dry)
    expect(ordersOf(entries).every(({ outcome }) => outcome === 'dry-run')).toBe(true)
    expect(ordersOf(entries).length).toBeGreaterThan(0)
    // Nobody took its replica away.
    expect(report.tenants['hasty']).toMatchObject({ requests: { rejected: 0 } })
  })
})

it('follows demand up and down, and drains a replica before it goes', async () => {
  const { report, entries } = await play(
    scenarioOf(
      { writer: 'spillway', minWarm: 1, max: 4, coldStartMs: 20_000, utilisation: 0.15 },
      {
        durationS: 420,
        workload: [
          { tenant: 'patient', model: 'chat', arrivals: { kind: 'poisson', ratePerS: 12 }, toS: 150, ...LENGTHS },
          { tenant: 'hasty', model: 'chat', arrivals: { kind: 'poisson', ratePerS: 1 }, ...LENGTHS },
        ],
      },
    ),
  )
  const orders = ordersOf(entries)
  expect(orders[0]).toMatchObject({ from: 1, outcome: 'done' })
  expect(report.scaling?.['chat-local']).toMatchObject({ replicasMin: 1 })
  expect(report.scaling?.['chat-local']?.replicasMax).toBeGreaterThan(1)
  const down = orders.find(({ from, to }) => to < from)
  expect(down).toMatchObject({ outcome: 'done' })
  expect(down?.leavingCount).toBe((down?.from ?? 0) - (down?.to ?? 0))
  const drained = entries.filter((entry) => entry.kind === 'fleet-changed' && entry.what === 'replica-draining')
  expect(drained.length).toBeGreaterThanOrEqual(down?.leavingCount ?? 1)
  expect(report.requests).toMatchObject({ failed: 0 })
})

describe('spot replicas', () => {
  const spot: Scenario = {
    ...scenarioOf({}, {}),
    durationS: 120,
    platform: {
      models: [{ name: 'chat' }],
      pools: [
        { model: 'chat', backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
        {
          id: 'spot',
          model: 'chat',
          backend: { kind: 'simulated', profile: 'h100-llama-8b' },
          replicas: 2,
          spot: true,
        },
      ],
      tenants: [
        { id: 'patient', slo: 'patient' },
        { id: 'hasty', slo: 'patient' },
      ],
    },
    workload: [
      { tenant: 'hasty', model: 'chat', band: 'interactive', arrivals: { kind: 'poisson', ratePerS: 4 }, ...LENGTHS },
      {
        tenant: 'patient',
        model: 'chat',
        band: 'offline',
        arrivals: { kind: 'poisson', ratePerS: 20 },
        deadlineMs: 300_000,
        retry: { kind: 'honour', triesMax: 20 },
        ...LENGTHS,
      },
    ],
    faults: [{ kind: 'spot-notice', target: 'spot', atS: 40, forS: 50 }],
  }

  it('get offline work only, which is called off when their end is announced', async () => {
    const { report, entries } = await play(spot)
    const settled = entries.flatMap((entry) => (entry.kind === 'settled' ? [entry] : []))
    expect(settled.some(({ band, poolId }) => band === 'interactive' && poolId === 'spot')).toBe(false)
    const online = settled.filter(({ band }) => band === 'interactive')
    expect(online.every(({ outcome }) => outcome === 'completed')).toBe(true)
    const calledOff = settled.filter(({ refusal }) => refusal?.code === 'shutting-down')
    expect(calledOff.length).toBeGreaterThan(0)
    expect(calledOff.every(({ at, poolId }) => at === 40_000_001 && poolId === 'spot')).toBe(true)
    // Nothing is lost at the end of the notice, because nothing ran there any more.
    expect(settled.some(({ refusal }) => refusal?.code === 'replica-lost')).toBe(false)
    expect(report.tenants['hasty']).toMatchObject({ requests: { rejected: 0, failed: 0 } })
  })
})
