/**
 * What does a request cost with one process and with two (`server.processes`), and what do two serve more?
 *
 * Both servers run all the time and take turns, so that both see the same neighbours. The CPU of a server is that of its
 * supervisor and all its processes, from /proc. Client and engine are one other process, which shares the machine's cores
 * with the servers: throughput grows only as far as that process leaves cores, so CPU a request is the figure to trust.
 *
 *   node bench/experiments/processes.ts [--rounds 5] [--requests 3000] [--connections 32]
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hashKey } from '../../src/config/key-hash.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    requests: { type: 'string', default: '3000' },
    connections: { type: 'string', default: '32' },
  },
})
const [rounds, requests, connections] = [values.rounds, values.requests, values.connections].map(Number) as [
  number,
  number,
  number,
]
const CLI = join(import.meta.dirname, '../../src/cli/cli.ts')
const KEY = 'sk-bench'
const folder = mkdtempSync(join(tmpdir(), 'spillway-processes-'))

const ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
})
const ASK = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 8 })

interface Served {
  readonly processes: number
  readonly child: ChildProcess
  readonly port: number
}

async function serve(processes: number, engine: string): Promise<Served> {
  const file = join(folder, `${processes}.yaml`)
  const settings = {
    server: { port: 0, processes },
    store: { path: 'memory:' },
    logging: { level: 'info' },
    models: [{ name: 'm' }],
    pools: [
      {
        model: 'm',
        backend: { kind: 'http-openai' },
        replicas: [engine],
        limit: { kind: 'fixed', concurrencyMax: 256 },
      },
    ],
    tenants: [{ id: 'a', slo: 'patient', keys: [{ id: 'a-1', hash: hashKey(KEY) }] }],
  }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(settings))
  const child = spawn(process.execPath, [CLI, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve, reject) => {
    let text = ''
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
    child.stdout.on('data', (part: Buffer) => {
      if (text.length < 100_000) text += part.toString()
      const found = /listening on http:\/\/[^:]+:(\d+)/.exec(text)
      if (found !== null) resolve(Number(found[1]))
    })
  })
  return { processes, child, port }
}

/** CPU seconds of a process and of everything that it started. */
function cpuOf(pid: number): number {
  const all = readdirSync('/proc').flatMap((name) => statOf(name) ?? [])
  const family = new Set([pid])
  for (let grew = true; grew; ) {
    grew = false
    for (const { id, parent } of all) {
      if (!family.has(parent) || family.has(id)) continue
      family.add(id)
      grew = true
    }
  }
  return all.reduce((sum, { id, seconds }) => (family.has(id) ? sum + seconds : sum), 0)
}

function statOf(name: string): { id: number; parent: number; seconds: number } | undefined {
  if (!/^\d+$/.test(name)) return undefined
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { id: Number(name), parent: Number(fields[1]), seconds: (Number(fields[11]) + Number(fields[12])) / 100 }
  } catch {
    return undefined
  }
}

function ask(port: number, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': ASK.length }
    const sent = request({ port, agent, method: 'POST', path: '/v1/chat/completions', headers }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.on('error', reject)
    sent.end(ASK)
  })
}

interface Round {
  readonly cpuUs: number
  /** The part of the process that was started: with several processes, the supervisor's. */
  readonly firstUs: number
  readonly perSecond: number
}

async function round({ port, child }: Served): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const pid = child.pid as number
  const cpuBefore = cpuOf(pid)
  const firstBefore = statOf(String(pid))?.seconds ?? 0
  const begunAt = performance.now()
  let left = requests
  let bad = 0
  const one = async (): Promise<void> => {
    while (left-- > 0) if ((await ask(port, agent)) !== 200) bad++
  }
  await Promise.all(Array.from({ length: connections }, one))
  const seconds = (performance.now() - begunAt) / 1_000
  agent.destroy()
  if (bad > 0) throw new Error(`${bad} requests were not answered with 200`)
  const firstUs = (1e6 * ((statOf(String(pid))?.seconds ?? 0) - firstBefore)) / requests
  return { cpuUs: (1e6 * (cpuOf(pid) - cpuBefore)) / requests, firstUs, perSecond: requests / seconds }
}

const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] as number

const engine = createServer((req, res) => {
  req.resume()
  req.on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER))
})
await new Promise<void>((resolve) => {
  engine.listen(0, '127.0.0.1', resolve)
})
const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
const servers: Served[] = []
try {
  for (const processes of [1, 2]) servers.push(await serve(processes, url))
  // Code that is called often is compiled again, in each process by itself.
  for (const server of servers) for (let i = 0; i < 2 * server.processes; i++) await round(server)
  const [one, two] = servers as [Served, Served]
  const ratios: number[] = []
  const growth: number[] = []
  for (let i = 0; i < rounds; i++) {
    // Who begins changes with each round.
    const [first, second] = i % 2 === 0 ? [one, two] : [two, one]
    const results = new Map([[first, await round(first)]])
    results.set(second, await round(second))
    const [a, b] = [results.get(one), results.get(two)]
    if (a === undefined || b === undefined) continue
    ratios.push(b.cpuUs / a.cpuUs)
    growth.push(b.perSecond / a.perSecond)
    process.stdout.write(
      `round ${i + 1}: CPU a request ${a.cpuUs.toFixed(0)} and ${b.cpuUs.toFixed(0)} µs (supervisor ${b.firstUs.toFixed(0)}), ` +
        `${a.perSecond.toFixed(0)} and ${b.perSecond.toFixed(0)} requests/s\n`,
    )
  }
  process.stdout.write(
    `two processes ÷ one: CPU a request ${median(ratios).toFixed(3)} (median of ${rounds}), throughput ` +
      `${median(growth).toFixed(2)}; ${availableParallelism()} cores with client and engine, load ${loadavg()[0]?.toFixed(1)}\n`,
  )
} finally {
  for (const { child } of servers) child.kill('SIGTERM')
  for (const { child } of servers) {
    if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve))
  }
  engine.close()
  engine.closeAllConnections()
  rmSync(folder, { recursive: true, force: true })
}
