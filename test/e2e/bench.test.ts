import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { ConfigError } from '../../src/config/config-error.ts'
import type { Entry, Settled } from '../../src/domain/entry.ts'
import { type Benched, type BenchOptions, bench } from '../../src/load/bench.ts'
import { runLoad } from '../../src/load/live-load.ts'
import type { Scenario, StreamSpec } from '../../src/sim/scenario/scenario.ts'
import { configOf, streamsOf } from '../../src/sim/scenario/scenario-config.ts'
import type { TraceRequest } from '../../src/sim/traces/trace.ts'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  type Behaviour,
  dropsConnection,
  FakeUpstream,
  fails,
  hangs,
  sends,
} from '../support/fake-upstream.ts'
import { ACME_KEY, GLOBEX_KEY, MODEL, startPlatform, testTree } from '../support/start-platform.ts'

/** The load generator against real sockets: what a client sees, and how it is told. */
const open: Array<{ close(): Promise<unknown> }> = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

async function upstream(behaviour: Behaviour): Promise<FakeUpstream> {
  const started = await FakeUpstream.start(behaviour)
  open.push(started)
  return started
}

function scenarioOf(spec: Partial<StreamSpec> = {}, durationS = 1): Scenario {
  const stream: StreamSpec = {
    tenant: 'acme',
    model: MODEL,
    arrivals: { kind: 'poisson', ratePerS: 30 },
    prompt: { kind: 'fixed', tokens: 60 },
    output: { kind: 'fixed', tokens: 5 },
    ...spec,
  }
  return {
    name: 'test',
    about: 'A test.',
    durationS,
    platform: {
      models: [{ name: MODEL }],
      pools: [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } }],
      tenants: [{ id: 'acme', slo: 'patient' }],
    },
    workload: [stream],
  } as unknown as Scenario
}

async function load(
  url: string,
  spec: Partial<StreamSpec> = {},
  durationS = 1,
  more: { readonly trace?: readonly TraceRequest[]; readonly clock?: Clock } = {},
): Promise<Settled[]> {
  const scenario = scenarioOf(spec, durationS)
  const entries: Entry[] = []
  await runLoad({
    url,
    streams: streamsOf(scenario, configOf(scenario, 1)),
    durationS,
    seed: 1,
    scale: 1,
    keyOf: () => 'sk-x',
    modelOf: (model) => model,
    take: (entry) => entries.push(entry),
    inFlightMax: 1_000,
    requestsMax: 1_000_000,
    ignoresEos: false,
    // Ends as soon as everybody is served; only a machine that stands still needs so long.
    graceS: 60,
    onTick: () => {},
    ...more,
  })
  const arrived = entries.filter(({ kind }) => kind === 'arrived')
  const settled = entries.filter((entry): entry is Settled => entry.kind === 'settled')
  expect(arrived.length).toBe(settled.length)
  return settled
}

function benchOptions(overrides: Partial<BenchOptions> & Pick<BenchOptions, 'scenario' | 'url'>): BenchOptions {
  return {
    keys: [],
    model: undefined,
    durationS: 1,
    scale: 1,
    seed: 1,
    requestsMax: 1_000,
    inFlightMax: 1_000,
    ignoresEos: false,
    onStart: () => {},
    onTick: () => {},
    ...overrides,
  }
}

describe('what a client sees', () => {
  it('times every token and believes the server\u2019s usage', async () => {
    // Six tokens in 200 ms; a busy machine may read two or three of them at once.
    const server = await upstream(answers({ everyMs: 40 }))
    const settled = await load(server.url)
    expect(settled.length).toBeGreaterThan(15)
    for (const { outcome, usage, firstTokenAt, lastTokenAt, arrivedAt, gaps } of settled) {
      expect(outcome).toBe('completed')
      expect(usage).toEqual({ promptTokens: 11, cachedTokens: 4, outputTokens: 6 })
      expect(firstTokenAt! - arrivedAt).toBeGreaterThanOrEqual(0)
      expect(lastTokenAt! - firstTokenAt!).toBeGreaterThan(80_000)
      expect(gaps?.counts.reduce((sum, count) => sum + count, 0)).toBe(5)
    }
    const body = server.seen[0]?.body
    expect(body).toMatchObject({ model: MODEL, stream: true, max_tokens: 5 })
    expect(server.seen[0]?.headers).toMatchObject({ authorization: 'Bearer sk-x', 'x-spillway-band': 'standard' })
  })

  it.each<[string, Behaviour, Partial<Settled>]>([
    ['429', fails(429, { error: { message: 'slow down', code: 'rate_limit_requests' } }), { outcome: 'rejected' }],
    ['503', fails(503, 'busy'), { outcome: 'rejected' }],
    ['an expired wait', fails(503, { error: { message: 'late', code: 'waited_too_long' } }), { outcome: 'expired' }],
    ['400', fails(400, { error: { message: 'bad', code: 'x' } }), { outcome: 'failed' }],
    ['500', fails(500, 'oops'), { outcome: 'failed' }],
    ['a dropped connection', dropsConnection, { outcome: 'failed' }],
    ['a stream cut short', answers({ breaksAfter: 2 }), { outcome: 'failed' }],
    ['an error frame', sends('data: {"error":{"message":"m","code":"evicted"}}\n\n'), { outcome: 'evicted' }],
    ['no [DONE]', answers({ hasDone: false }), { outcome: 'completed' }],
    ['frames in pieces', answers({ pieceBytes: 7 }), { outcome: 'completed' }],
  ])('%s', async (_, behaviour, expected) => {
    const server = await upstream(behaviour)
    const settled = await load(server.url, { arrivals: { kind: 'poisson', ratePerS: 40 } }, 0.2)
    expect(settled.length).toBeGreaterThan(2)
    for (const each of settled) expect(each).toMatchObject(expected)
  })
})

describe('what a client does', () => {
  it('comes back as told, or at once, as the scenario says', async () => {
    const server = await upstream(fails(429, '{}', { 'retry-after': '1', 'retry-after-ms': '300' }))
    const arrivals = { kind: 'gamma', ratePerS: 4, cv: 0.1 } as const
    // On a slow clock ten tries at once take no time, however busy the machine is.
    const sent = (kind: 'honour' | 'at-once'): Promise<Settled[]> =>
      load(server.url, { arrivals, retry: { kind, triesMax: 10 } }, 1, { clock: new LiveClock(0.2) })
    const [polite, rude] = await Promise.all([sent('honour'), sent('at-once')])
    expect(polite.length).toBeLessThan(15)
    expect(rude.length).toBeGreaterThan(25)
  })

  it('leaves, and the server notices', async () => {
    const server = await upstream(hangs)
    const settled = await load(server.url, { leaveAfterMs: { min: 50, max: 100, ratio: 1 } }, 0.5)
    expect(settled.every(({ outcome }) => outcome === 'cancelled')).toBe(true)
    await eventually('the server notices', () => server.openAnswers === 0)
  })

  it('plays a trace: each request at its time, with its lengths', async () => {
    const server = await upstream(answers())
    const trace = [
      { atUs: 50_000, promptTokens: 100, outputTokens: 7 },
      { atUs: 250_000, promptTokens: 600, outputTokens: 9 },
      { atUs: 5_000_000, promptTokens: 600, outputTokens: 9 },
    ]
    const settled = await load(server.url, {}, 0.5, { trace })
    expect(settled.map(({ arrivedAt }) => arrivedAt)).toEqual([50_000, 250_000])
    expect(server.seen.map(({ body }) => body['max_tokens'])).toEqual([7, 9])
  })

  it('does not wait for a slow server: as many arrive as at a quick one', async () => {
    const [quick, slow] = await Promise.all(
      [answers(), answers({ everyMs: 300 })].map(async (behaviour) => load((await upstream(behaviour)).url)),
    )
    expect(slow?.length).toBe(quick?.length)
  })

  it('counts from when it meant to send', async () => {
    // The process stands still once requests come: some forty are meant to be sent meanwhile.
    let answered = 0
    let underWay = 0
    const server: FakeUpstream = await upstream(async (call) => {
      await answers()(call)
      if (++answered !== 5) return
      underWay = server.seen.length
      const until = performance.now() + 400
      while (performance.now() < until);
    })
    const settled = await load(server.url, { arrivals: { kind: 'poisson', ratePerS: 100 } })
    const late = settled.filter(({ firstTokenAt, arrivedAt }) => firstTokenAt! - arrivedAt > 250_000)
    // More than had been sent before: their answers, too, are late.
    expect(late.length).toBeGreaterThan(underWay)
  })
})

describe('bench against Spillway', () => {
  it('gives the report of a simulated run, each tenant with its key', async () => {
    const platform = await startPlatform()
    open.push(platform)
    const scenario = scenarioOf()
    const { workload } = scenario
    const two = {
      ...scenario,
      platform: {
        ...scenario.platform,
        tenants: [
          { id: 'acme', slo: 'patient' },
          { id: 'globex', slo: 'patient' },
        ],
      },
      workload: [...workload, { ...workload[0]!, tenant: 'globex' }],
      expect: [{ what: 'all is served', path: 'requests.shed', atMost: 0 }],
    }
    const keys = [`acme=${ACME_KEY}`, `globex=${GLOBEX_KEY}`]
    const { report, expectations }: Benched = await bench(benchOptions({ scenario: two, url: platform.address, keys }))
    expect(report.requests.failed).toBe(0)
    expect(report.tenants['globex']?.requests.completed).toBe(report.tenants['globex']?.requests.arrived)
    expect(report.latency.ttft.p95).toBeGreaterThan(0)
    expect(expectations).toMatchObject([{ holds: true }])
    platform.journal.drain()
    const served = platform.entries.filter((entry) => entry.kind === 'settled' && entry.tenantId === 'globex')
    expect(served.length).toBe(report.tenants['globex']?.requests.completed)
  })

  it.each<[string, Partial<BenchOptions>, RegExp]>([
    ['nobody there', { url: 'http://127.0.0.1:9' }, /no server answers at http:\/\/127.0.0.1:9/],
    ['no address', { url: 'gpu-1' }, /--url is "gpu-1"/],
    ['a key for nobody', { keys: ['acne=sk-1'] }, /--key names "acne".*Did you mean "acme"/],
    ['a wrong key', { keys: ['acme=sk-wrong'] }, /answers 401: its key was refused for acme/],
    ['no such model', { keys: [ACME_KEY], model: 'gpt-9' }, /has no model "gpt-9". It has sim/],
  ])('%s is one clear line', async (_, overrides, message) => {
    const platform = await startPlatform()
    open.push(platform)
    const options = benchOptions({ scenario: scenarioOf(), url: platform.address, ...overrides })
    const error = await bench(options).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as ConfigError).problems[0]).toMatch(message)
  })

  it('asks a server with one model for that one, whatever the scenario calls it', async () => {
    const platform = await startPlatform(testTree({ models: [{ name: MODEL }] }))
    open.push(platform)
    const scenario = scenarioOf({ model: 'large' })
    const { report } = await bench(benchOptions({ scenario, url: platform.address, keys: [ACME_KEY], requestsMax: 3 }))
    expect(report.requests).toMatchObject({ arrived: 3, completed: 3 })
  })

  it('stops after so many requests', async () => {
    const server = await upstream(answers())
    const { report } = await bench(benchOptions({ scenario: scenarioOf(), url: server.url, requestsMax: 5 }))
    expect(report.requests.arrived).toBe(5)
  })
})
