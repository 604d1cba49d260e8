import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hashKey } from '../../src/config/key-hash.ts'
import { type StartedServer, startServer } from '../load/start-server.ts'

/**
 * What do spans cost? Bars: at 1 % of the requests at most 2 % of the server's CPU, at 100 % at most 35 %.
 *
 * Three servers of the same configuration: without a collector, and with one for 1 % and for 100 % of the requests. Each
 * round asks each of them for as many answers, in turns, waits until its exporter has had its second, and reads the CPU
 * time of the whole process. Engine, collector and clients are in this process and cost the servers nothing. The ratio
 * is that of the same round, so that what disturbs a round disturbs all three.
 *
 *   node bench/micro/spans.ts [--rounds 12] [--requests 400] [--frames 20]
 *
 * `--frames 0` asks for whole answers: the cheapest request there is, so the dearest spans by ratio.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    requests: { type: 'string', default: '400' },
    frames: { type: 'string', default: '20' },
  },
})
const [rounds, requests, frames] = [values.rounds, values.requests, values.frames].map(Number) as [
  number,
  number,
  number,
]
const WARM_UP_ROUNDS = 2
const CLIENTS = 16
/** The exporter sends once a second. */
const EXPORT_MS = 1_300
const KEY = 'sk-bench'
const METRICS_KEY = 'sk-bench-metrics'
const BARS = { 0.01: 1.02, 1: 1.35 }

const textOf = async (stream: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const part of stream) text += String(part)
  return text
}

function listen(handle: (req: IncomingMessage) => Promise<{ type: string; text: string }>): Promise<Server> {
  const server = createServer((req, res) => {
    void handle(req).then(({ type, text }) => res.writeHead(200, { 'content-type': type }).end(text))
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server))
  })
}

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const head = '"id":"c","created":1755137933,"model":"m"'
const usage = `"usage":{"prompt_tokens":9,"completion_tokens":${frames || 20},"total_tokens":${9 + (frames || 20)}}`
const chunk = (delta: string, finish: string): string =>
  `data: {${head},"object":"chat.completion.chunk","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`
const STREAM =
  chunk('{"content":"word "}', 'null').repeat(frames) +
  chunk('{}', '"stop"') +
  `data: {${head},"object":"chat.completion.chunk","choices":[],${usage}}\n\ndata: [DONE]\n\n`
const WHOLE = `{${head},"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}],${usage}}`

const engine = await listen(async (req) => {
  await textOf(req)
  if (req.method === 'GET') return { type: 'application/json', text: '{"object":"list","data":[{"id":"m"}]}' }
  return frames > 0 ? { type: 'text/event-stream', text: STREAM } : { type: 'application/json', text: WHOLE }
})

const folder = mkdtempSync(join(tmpdir(), 'spillway-spans-'))

interface Contestant {
  readonly name: string
  readonly ratio: number
  readonly server: StartedServer
  /** What its collector was sent. */
  readonly told: { spans: number }
  readonly collector: Server
  /** CPU µs a request, one for each round. */
  readonly costs: number[]
}

async function enter(name: string, ratio: number): Promise<Contestant> {
  const told = { spans: 0 }
  const collector = await listen(async (req) => {
    const text = await textOf(req)
    if (req.url === '/v1/traces') told.spans += text.split('"spanId"').length - 1
    return { type: 'application/json', text: '{}' }
  })
  const file = join(folder, `${ratio}.json`)
  const config = {
    admin: { metricsKeys: [{ id: 'bench', hash: hashKey(METRICS_KEY) }] },
    models: [{ name: 'm' }],
    pools: [
      {
        model: 'm',
        backend: { kind: 'http-openai' },
        replicas: [`${urlOf(engine)}/v1`],
        limit: { kind: 'fixed', concurrencyMax: 64 },
      },
    ],
    slos: [{ name: 'patient', ttftMs: 60_000, interTokenMs: 60_000, totalMs: 600_000 }],
    tenants: [{ id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(KEY) }] }],
    store: { path: 'memory:' },
    ledger: { enabled: false },
    // Metrics are sent with spans or without: their cost is not asked for here.
    ...(ratio > 0 && { telemetry: { otlpUrl: urlOf(collector), sampleRatio: ratio, metricsEveryMs: 0 } }),
  }
  writeFileSync(file, JSON.stringify(config))
  const server = await startServer(['--config', file])
  return { name, ratio, server, collector, told, costs: [] }
}

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
const BODY = JSON.stringify({
  model: 'm',
  stream: frames > 0,
  max_tokens: 32,
  messages: [{ role: 'user', content: 'What is a weir?' }],
})

function ask(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': BODY.length }
  return new Promise((resolve, reject) => {
    const req = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (res) => {
      if (res.statusCode === 200) res.resume().on('end', resolve)
      else void textOf(res).then((text) => reject(new Error(`the server answered ${res.statusCode}: ${text}`)))
    })
    req.on('error', reject).end(BODY)
  })
}

async function cpuUs({ server }: Contestant): Promise<number> {
  const page = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${METRICS_KEY}` } })
  return 1e6 * Number(/^process_cpu_seconds_total (\S+)$/m.exec(await page.text())?.[1])
}

/** CPU µs of the server for one request, with the export of its spans. */
async function spend(contestant: Contestant): Promise<number> {
  const before = await cpuUs(contestant)
  let left = requests
  const client = async (): Promise<void> => {
    while (left-- > 0) await ask(contestant.server.url)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await new Promise((resolve) => setTimeout(resolve, EXPORT_MS))
  return ((await cpuUs(contestant)) - before) / requests
}

const sorted = (samples: readonly number[]): number[] => samples.toSorted((a, b) => a - b)
const median = (samples: readonly number[]): number => sorted(samples)[samples.length >> 1] as number
const spread = (samples: readonly number[], digits: number): string => {
  const inOrder = sorted(samples)
  const [low, high] = [0.25, 0.75].map((at) => inOrder[Math.floor(at * (inOrder.length - 1))] as number)
  return `${median(samples).toFixed(digits)} (quartiles ${low?.toFixed(digits)}–${high?.toFixed(digits)})`
}

const contestants: Contestant[] = []
for (const ratio of [0, 0.01, 1]) contestants.push(await enter(`${ratio * 100} %`, ratio))
try {
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    // Who comes first changes from round to round.
    for (let i = 0; i < contestants.length; i++) {
      const contestant = contestants[(i + round + WARM_UP_ROUNDS) % contestants.length] as Contestant
      const cost = await spend(contestant)
      if (round >= 0) contestant.costs.push(cost)
    }
  }
  const answers = frames > 0 ? `streamed answers of ${frames} frames` : 'whole answers'
  console.log(
    `node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}; ${rounds} rounds of ${requests} ${answers}`,
  )
  const [none, , all] = contestants as [Contestant, Contestant, Contestant]
  for (const { name, ratio, costs, told } of contestants) {
    const ratios = costs.map((cost, i) => cost / (none.costs[i] as number))
    const bar = BARS[ratio as keyof typeof BARS]
    const verdict = bar === undefined ? '' : `  at most ${bar}: ${median(ratios) <= bar ? 'yes' : 'NO'}`
    console.log(
      `${name.padStart(6)}  ${spread(costs, 0)} µs a request, × ${spread(ratios, 3)}, ${told.spans} spans${verdict}`,
    )
    if (bar !== undefined && median(ratios) > bar) process.exitCode = 1
  }
  // What 1 % costs is less than a busy machine can tell; what all cost, divided by a hundred, says it better.
  const added = all.costs.map((cost, i) => cost - (none.costs[i] as number))
  const percent = added.map((us, i) => us / (none.costs[i] as number))
  console.log(`a request with spans: ${spread(added, 0)} µs more; one of a hundred: + ${spread(percent, 2)} %`)
} finally {
  for (const { server, collector } of contestants) {
    await server.stop('SIGTERM')
    collector.close().closeAllConnections()
  }
  agent.destroy()
  engine.close().closeAllConnections()
  rmSync(folder, { recursive: true, force: true })
}
