import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { InsideEngine } from '../support/engine-process.ts'
import { eventually, pause } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { PrometheusServer } from '../support/prometheus-server.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  METRICS_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/**
 * Every expression of the boards and every rule, asked of a real Prometheus after a load: none is an error, and none is
 * empty. The load has what the boards are about: two tenants that press on two small pools, so that they wait, are
 * degraded and refused; a canary that gets half of it; an engine that only fails; prices.
 */
interface BoardsScript {
  boardFiles(): (readonly [path: string, text: string])[]
}

const script = (await import(new URL('../../scripts/boards.mjs', import.meta.url).href)) as BoardsScript
const expressions = script
  .boardFiles()
  .flatMap(([path, text]) =>
    (JSON.parse(text) as { panels: { title: string; targets: { expr: string }[] }[] }).panels.flatMap((panel) =>
      panel.targets.map(({ expr }) => [`${path}: ${panel.title}`, expr] as const),
    ),
  )
const rules = (
  parse(readFileSync(new URL('../../deploy/prometheus/spillway.rules.yaml', import.meta.url), 'utf8')) as {
    groups: { rules: { alert?: string; record?: string }[] }[]
  }
).groups.flatMap((group) => group.rules)
const recorded = rules.flatMap(({ record }) => (record === undefined ? [] : [record]))

const WINDOW = '15s'
/** Looks, a second apart. The fairness index needs half a minute of waiting; the rest comes sooner. */
const LOOKS_MAX = 90
const ADMIN_KEY = 'sk-test-admin'
const FAULTY = 'faulty'
/** Every caller's trace; its sampled flag is set. */
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
/** More than the pools have room for, so that some of each tenant always wait. */
const CLIENTS_PER_TENANT = 14
const MESSAGES = Array.from({ length: 21 }, (_, i) => ({
  role: i % 2 === 0 ? 'user' : 'assistant',
  content: 'Water that is held back is not lost. '.repeat(6),
}))

function tree(faultyUrl: string) {
  const pool = (id: string, release: string) => ({
    id,
    model: MODEL,
    release,
    backend: { kind: 'simulated', profile: 'h100-llama-8b' },
    limit: { kind: 'fixed', concurrencyMax: 2 },
    usdPerHour: 3,
  })
  const tenant = (id: string, key: string) => ({ id, slo: 'pressed', keys: [{ id: `${id}-1`, hash: hashKey(key) }] })
  return testTree({
    admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
    slos: [{ name: 'pressed', ttftMs: 4_000, interTokenMs: 250, totalMs: 60_000 }],
    models: [
      { name: MODEL, releases: [{ version: '1' }, { version: '2' }], rollout: { stable: '1' } },
      { name: FAULTY },
    ],
    pools: [
      pool('stable', '1'),
      pool('tried', '2'),
      { model: FAULTY, backend: { kind: 'http-openai', upstreamModel: FAULTY }, replicas: [`${faultyUrl}/v1`] },
    ],
    tenants: [tenant('acme', ACME_KEY), tenant('globex', GLOBEX_KEY)],
  })
}

const why = missing('prometheus')
describe.skipIf(why !== undefined)(`boards and rules after a load${why === undefined ? '' : `: ${why}`}`, () => {
  const closing: Array<() => Promise<unknown>> = []
  const clients: Promise<void>[] = []
  let platform: TestPlatform
  let prometheus: PrometheusServer
  let isOver = false

  async function ask(key: string, session: string, model = MODEL): Promise<void> {
    const chat = { model, messages: MESSAGES, max_tokens: 120, stream: true }
    const headers = { ...authorization(key), 'x-session-id': session, traceparent: `00-${TRACE}-00f067aa0ba902b7-01` }
    const response = await postJson(`${platform.baseURL}/chat/completions`, chat, headers)
    await response.text()
    // Who was refused comes again: a little later, as clients do.
    if (response.status !== 200) await pause(250)
  }

  async function client(key: string, nth: number, model = MODEL): Promise<void> {
    for (let i = 0; !isOver; i++) await ask(key, `${nth}-${i}`, model)
  }

  beforeAll(async () => {
    const faulty = await InsideEngine.start('--profile', 'h100-llama-8b', '--model', FAULTY, '--fail-rate', '1')
    closing.push(() => faulty.stop())
    platform = await startPlatform(tree(faulty.url))
    closing.push(() => platform.close())
    prometheus = await PrometheusServer.start({ address: platform.address, key: METRICS_KEY })
    closing.push(() => prometheus.end())
    const io = { out: () => {}, err: () => {} }
    const words = ['rollout', 'start', MODEL, '--release', '2', '--because', 'a load for the boards']
    expect(await runCli([...words, '--key', ADMIN_KEY, '--url', platform.address], io)).toBe(0)
    for (const key of [ACME_KEY, GLOBEX_KEY]) {
      for (let nth = 0; nth < CLIENTS_PER_TENANT; nth++) clients.push(client(key, nth))
    }
    clients.push(client(ACME_KEY, 0, FAULTY))
  }, 120_000)

  afterAll(async () => {
    isOver = true
    await Promise.all(clients)
    for (const close of closing.reverse()) await close()
  }, 120_000)

  it('fills every expression of the boards and every recording rule', { timeout: 240_000 }, async () => {
    const asked = [...expressions, ...recorded.map((name) => ['recorded', name] as const)]
    const left = new Map(asked.map(([where, expr]) => [`${where}: ${expr}`, expr]))
    for (let look = 0; left.size > 0 && look < LOOKS_MAX; look++) {
      if (look > 0) await pause(1_000)
      for (const [where, expr] of left) {
        const series = await prometheus.query(expr.replaceAll('$__rate_interval', WINDOW))
        // A quantile of nothing is a series too, of NaN: a board would show nothing.
        if (series.some(({ value }) => Number.isFinite(Number(value[1])))) left.delete(where)
      }
    }
    // A board that no load can fill is a wrong board: there is no list of exceptions.
    expect([...left.keys()]).toEqual([])
  })

  it('evaluates every rule of the file without an error', { timeout: 60_000 }, async () => {
    const all = await eventually('every rule was evaluated', async () => {
      const told = await prometheus.rules()
      return told.every(({ health }) => health !== 'unknown') && told
    })
    expect(all).toHaveLength(rules.length)
    expect(all.filter(({ health }) => health !== 'ok').map(({ name, lastError }) => `${name}: ${lastError}`)).toEqual(
      [],
    )
  })

  it('leads from a latency to a trace', { timeout: 60_000 }, async () => {
    const found = await eventually('exemplars came with a scrape', async () => {
      const ids = await prometheus.traceIds('spillway_time_to_first_token_seconds_bucket')
      return ids.length > 0 && ids
    })
    expect(new Set(found)).toEqual(new Set([TRACE]))
  })

  it('notices an expression that is empty, and one that is none', async () => {
    expect(await prometheus.query('rate(spillway_requests[15s])')).toEqual([])
    await expect(prometheus.query('rate(spillway_requests_total)')).rejects.toThrow(/range vector/)
  })
})
