/**
 * Does the promise hold on a real engine that nobody described? One engine behind a URL, and the same requests sent to it
 * directly and through gateways that differ in one setting:
 *
 *   direct       no gateway
 *   learned      nothing is declared: no limit, no profile
 *   told         the profile is named (`--profile`)
 *   fixed-N      a fixed limit of N sequences
 *
 *   node bench/load/real-engine/run.ts --engine http://127.0.0.1:8000/v1 [--ways learned,told,fixed-140]
 *     [--workloads calm10,over26,noisy] [--seconds 40] [--warmup 15] [--seed 1] [--profile NAME] [--json FILE]
 *
 * Each way has a gateway of its own, started for it and warmed up with ordinary traffic that is not counted; ways take
 * turns on the engine. A good answer has its first token within 1 s, 60 ms a token, and ends within 40 s. Bounded: no
 * run lasts longer than its seconds and the answers that are open then. The engine must be on loopback.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startServer } from '../start-server.ts'
import { play, type Seen } from './client.ts'
import { makeWorkload, tenantsOf, type Workload } from './workloads.ts'

const PROMISE = { ttftS: 1, tokenS: 0.06, totalS: 40 }
const WARM_UP_PER_S = 8

const { values } = parseArgs({
  options: {
    engine: { type: 'string' },
    ways: { type: 'string', default: 'direct,learned,told,fixed-140,fixed-240' },
    workloads: { type: 'string', default: 'calm10,over26,over44,noisy' },
    seconds: { type: 'string', default: '40' },
    warmup: { type: 'string', default: '15' },
    seed: { type: 'string', default: '1' },
    profile: { type: 'string', default: 'h200-llama-8b' },
    model: { type: 'string', default: 'llama' },
    json: { type: 'string' },
  },
})

interface Gateway {
  readonly url: string
  readonly keys: ReadonlyMap<string, string>
  readonly stop: () => Promise<void>
}

function configOf(way: string, engine: string, keys: ReadonlyMap<string, string>, store: string): object {
  const fixed = /^fixed-(\d+)$/.exec(way)
  const told = way === 'told' ? { profile: values.profile } : {}
  return {
    server: { host: '127.0.0.1' },
    store: { path: store },
    models: [{ name: values.model, contextTokensMax: 8_192 }],
    pools: [
      {
        model: values.model,
        backend: { kind: 'http-openai', url: engine, ...told },
        ...(fixed !== null && { limit: { kind: 'fixed', concurrencyMax: Number(fixed[1]) } }),
      },
    ],
    slos: [
      {
        name: 'people',
        ttftMs: PROMISE.ttftS * 1_000,
        interTokenMs: PROMISE.tokenS * 1_000,
        totalMs: PROMISE.totalS * 1_000,
      },
    ],
    tenants: [...keys].map(([id, key]) => ({
      id,
      slo: 'people',
      keys: [{ id: `key-${id}`, hash: `sha256:${createHash('sha256').update(key).digest('hex')}` }],
    })),
  }
}

async function startGateway(way: string, engine: string, tenants: readonly string[]): Promise<Gateway> {
  const keys = new Map(tenants.map((tenant) => [tenant, `sk-${tenant}-real-engine-bench`]))
  if (way === 'direct') return { url: engine, keys, stop: () => Promise.resolve() }
  const folder = mkdtempSync(join(tmpdir(), 'spillway-real-engine-'))
  const file = join(folder, 'spillway.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(configOf(way, engine, keys, 'memory:')))
  const server = await startServer(['--config', file])
  const stop = async (): Promise<void> => {
    await server.stop('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: `${server.url}/v1`, keys, stop }
}

const isGood = ({ status, code, firstTokenS, totalS, tokens }: Seen): boolean =>
  status === 200 &&
  code === '' &&
  firstTokenS !== undefined &&
  firstTokenS <= PROMISE.ttftS &&
  totalS <= PROMISE.totalS &&
  (totalS - firstTokenS) / Math.max(1, tokens - 1) <= PROMISE.tokenS

function quantile(sorted: readonly number[], ratio: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * ratio))] ?? Number.NaN
}

interface Row {
  readonly workload: string
  readonly way: string
  readonly of: string
  readonly sent: number
  readonly good: number
  readonly late: number
  readonly refused: number
  readonly shortened: number
  readonly ttftMs: readonly [number, number, number]
  readonly codes: Readonly<Record<string, number>>
}

function rowOf(workload: string, way: string, of: string, seen: readonly Seen[]): Row {
  const answered = seen.filter(({ status, code }) => status === 200 && code === '')
  const first = answered.flatMap(({ firstTokenS }) => firstTokenS ?? []).sort((a, b) => a - b)
  const codes: Record<string, number> = {}
  for (const { status, code } of seen)
    if (status !== 200 || code !== '') codes[`${status} ${code}`] = (codes[`${status} ${code}`] ?? 0) + 1
  const good = answered.filter(isGood).length
  return {
    workload,
    way,
    of,
    sent: seen.length,
    good,
    late: answered.length - good,
    refused: seen.filter(({ status }) => status === 429 || status === 503).length,
    shortened: answered.filter(({ tokens, ask }) => tokens < ask.outputTokens).length,
    ttftMs: [0.5, 0.95, 0.99].map((ratio) => Math.round(quantile(first, ratio) * 1_000)) as [number, number, number],
    codes,
  }
}

function rowsOf({ name, calm }: Workload, way: string, seen: readonly Seen[]): Row[] {
  if (calm === undefined) return [rowOf(name, way, 'all', seen)]
  const { tenants, fromS, toS } = calm
  const inSpike = seen.filter(({ ask }) => tenants.includes(ask.tenant) && ask.atS >= fromS && ask.atS < toS)
  return [rowOf(name, way, 'all', seen), rowOf(name, way, 'calm tenants in the spike', inSpike)]
}

function print({ workload, way, of, sent, good, late, refused, shortened, ttftMs, codes }: Row): void {
  const cells = [
    workload.padEnd(8),
    way.padEnd(10),
    of.padEnd(26),
    `${good} of ${sent} good`.padEnd(20),
    `${late} late`.padEnd(9),
  ]
  const more = [
    `${refused} refused`.padEnd(13),
    `${shortened} shortened`.padEnd(15),
    `first token ${ttftMs.join('/')} ms`,
  ]
  process.stdout.write(
    `${[...cells, ...more].join('')}  ${Object.keys(codes).length > 0 ? JSON.stringify(codes) : ''}\n`,
  )
}

async function runWay(name: string, way: string, engine: string): Promise<Row[]> {
  const seed = Number(values.seed)
  const workload = makeWorkload(name, seed, Number(values.seconds))
  if (workload === undefined) throw new Error(`no workload is called "${name}": calmN, overN or noisy.`)
  const gateway = await startGateway(way, engine, tenantsOf(name))
  try {
    const to = { url: gateway.url, model: values.model, keys: gateway.keys }
    const warmUpS = Number(values.warmup)
    if (warmUpS > 0 && way !== 'direct') {
      const { asks } = makeWorkload(`calm${WARM_UP_PER_S}`, seed + 1_000, warmUpS) as Workload
      const tenants = tenantsOf(name)
      const own = asks.map((ask, i) => ({ ...ask, tenant: tenants[i % tenants.length] as string }))
      await play({ name: 'warm-up', seconds: warmUpS, asks: own }, to)
    }
    return rowsOf(workload, way, await play(workload, to))
  } finally {
    await gateway.stop()
  }
}

if (values.engine === undefined || !/^http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/]/.test(values.engine)) {
  process.stderr.write('run.ts: --engine must be the address of an engine on loopback, as http://127.0.0.1:8000/v1\n')
  process.exit(2)
}
const rows: Row[] = []
for (const name of values.workloads.split(',')) {
  for (const way of values.ways.split(',')) {
    const found = await runWay(name, way, values.engine)
    for (const row of found) print(row)
    rows.push(...found)
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ ...values, rows }, null, 2)}\n`)
  }
}
