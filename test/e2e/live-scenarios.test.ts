import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { bench } from '../../src/main/bench.ts'
import { simulate } from '../../src/main/simulate.ts'
import type { Report } from '../../src/sim/report.ts'
import type { Scenario } from '../../src/sim/scenario.ts'
import { namedScenario } from '../support/simulated.ts'
import { startPlatform, type TestPlatform } from '../support/start-platform.ts'

/**
 * Law L12: the first three scenarios at reduced scale, live and simulated. Live means the real server, real sockets and
 * real time, with simulated engines; both are told by the same collector. They must agree on who was served, who was
 * refused and who noticed, within tolerances that leave room for a busy machine:
 *
 *   served per tenant    within a quarter, or ten requests; two fifths for a tenant that is refused more than a tenth:
 *                        how much of it fits depends on the time that the engines' process is given
 *   shed per tenant      within a fifth of what it asked for
 *   first tokens         of those who must not notice: 95 of 100 within a second in both, and at most one refused
 *
 * On an idle machine they are much nearer (served within 6 %, median first tokens within 15 ms). Real time is shared
 * with whatever else runs here: a run in which this process could not keep up (its event loop fell behind) says nothing
 * about the law. It is given another try, and when all were starved the test says so and is skipped.
 */
const TRIES_MAX = 3
/** Behind by this much at the 95th and 99th percentile of looks every 10 ms: beyond it tokens of 10 ms come in lumps. */
const STARVED_MS = { p95: 10, p99: 30 }

const SERVED_RATIO = 0.25
const SERVED_RATIO_REFUSED = 0.4
const SERVED_COUNT = 10
const SHED_RATIO = 0.2
/** A whole answer's frames cost a real process more than a simulated engine: a quarter of them tells as much. */
const SHORT_ANSWERS = {
  kind: 'quantiles',
  points: [
    [0, 4],
    [0.5, 32],
    [0.9, 106],
    [1, 200],
  ],
}

interface Live {
  readonly name: string
  readonly durationS: number
  /** Of the scenario's rates. */
  readonly scale: number
  readonly set: Readonly<Record<string, unknown>>
  /** Tenants whose promise is kept whatever the others do. */
  readonly calm: readonly string[]
}

const spike = (fromS: number, toS: number, factor: number): unknown => [{ fromS, toS, factor }]

const LIVE: readonly Live[] = [
  {
    name: 'noisy-neighbour',
    durationS: 14,
    scale: 0.5,
    set: { 'workload.3.arrivals.ratePerS': 100 },
    calm: ['calm-a', 'calm-b', 'calm-c'],
  },
  {
    name: 'burst',
    durationS: 14,
    scale: 0.25,
    set: Object.fromEntries([0, 1, 2, 3].map((i) => [`workload.${i}.phases`, spike(5, 9, 5)])),
    calm: [],
  },
  {
    name: 'viral-spike-20x',
    durationS: 16,
    scale: 0.25,
    set: { 'workload.0.phases': spike(5, 10, 20), 'workload.1.phases': spike(5, 10, 20) },
    calm: ['shop', 'bank'],
  },
]

const open: TestPlatform[] = []
afterAll(async () => {
  for (const platform of open) await platform.close()
})

function reduced({ name, durationS, set }: Live): Scenario {
  const streams = namedScenario(name).workload.length
  const outputs = Array.from({ length: streams }, (_, i) => [`workload.${i}.output`, SHORT_ANSWERS])
  const paths = { ...Object.fromEntries(outputs), ...set, durationS, warmupS: 0, parts: {}, expect: [], variants: {} }
  return namedScenario(name, { ...paths, 'platform.pools.0.replicas': 1 })
}

async function runLive(scenario: Scenario, { durationS, scale }: Live): Promise<Report> {
  const tenants = (scenario.platform as { tenants: Array<{ id: string }> }).tenants
  const platform = await startPlatform({
    ...scenario.platform,
    server: { port: 0 },
    logging: { level: 'silent' },
    tenants: tenants.map((tenant) => ({ ...tenant, keys: [{ id: tenant.id, hash: hashKey(`sk-${tenant.id}`) }] })),
  })
  open.push(platform)
  const { report } = await bench({
    scenario,
    url: platform.address,
    keys: tenants.map(({ id }) => `${id}=sk-${id}`),
    model: undefined,
    durationS,
    scale,
    seed: 1,
    requestsMax: 100_000,
    inFlightMax: 2_000,
    ignoresEos: true,
    onStart: () => {},
    onTick: () => {},
  })
  return report
}

/** The first run in which the machine let us keep up; undefined when none did. */
async function runUndisturbed(scenario: Scenario, live: Live): Promise<Report | undefined> {
  for (let attempt = 1; attempt <= TRIES_MAX; attempt++) {
    const behind = monitorEventLoopDelay({ resolution: 10 })
    behind.enable()
    const report = await runLive(scenario, live)
    behind.disable()
    const behindMs = (percentile: number): number => behind.percentile(percentile) / 1e6 - 10
    if (behindMs(95) < STARVED_MS.p95 && behindMs(99) < STARVED_MS.p99) return report
  }
  return undefined
}

describe('live and simulated runs agree', () => {
  it.for(LIVE)('$name', { timeout: 120_000 }, async (live, { skip }) => {
    const scenario = reduced(live)
    const simulated = await simulate({ ...scenario, load: live.scale }, { seed: 1 })
    const seen = await runUndisturbed(scenario, live)
    if (seen === undefined) return skip(`${live.name}: this machine was too busy to compare with real time`)
    expect(seen.requests.failed).toBe(0)
    for (const [id, wanted] of Object.entries(simulated.tenants)) {
      const got = seen.tenants[id]!
      const shedRatio = ({ requests }: typeof wanted): number => requests.shed / Math.max(1, requests.arrived)
      const ratio = shedRatio(wanted) > 0.1 ? SERVED_RATIO_REFUSED : SERVED_RATIO
      const apart = Math.abs(got.requests.completed - wanted.requests.completed)
      const apartMax = Math.max(SERVED_COUNT, ratio * wanted.requests.completed)
      expect(apart, `${id}: served`).toBeLessThanOrEqual(apartMax)
      expect(Math.abs(shedRatio(got) - shedRatio(wanted)), `${id}: shed`).toBeLessThanOrEqual(SHED_RATIO)
    }
    for (const id of live.calm) {
      for (const report of [simulated, seen]) {
        expect(report.tenants[id]?.requests.shed, `${id} is not refused`).toBeLessThanOrEqual(1)
        expect(report.tenants[id]?.latency.ttft.p95, `${id} does not notice`).toBeLessThan(1_000)
      }
    }
  })
})
