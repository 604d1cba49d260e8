/**
 * Can one client stop the gateway for all others? Each attack of `attacks.ts` is run for a few seconds against a server
 * that is started for it, on loopback. Meanwhile a client asks for `/health` every 20 ms, from a thread of its own.
 * Reported: the answers to the attack, the times of `/health`, and the server's memory before, at its highest, and
 * after.
 *
 *   node bench/load/attacks/run.ts [--seconds N] [--only name,name] [--json]
 *
 * The bar: `/health` p99 at most 100 ms, and memory back within 150 MB of what it was. Exits with 1 when it is missed.
 * Quote figures of an idle machine only; the row `nothing` shows what the machine adds by itself.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { startServer } from '../start-server.ts'
import { ATTACKS } from './attacks.ts'

const PROBE_EVERY_MS = 20
const HEALTH_P99_MS_MAX = 100
/** Pages that the allocator keeps, and garbage that V8 collects with its next work. */
const RSS_MB_MORE_MAX = 150
/** Time after an attack in which memory may be given back. */
const REST_MS = 12_000
const WARM_UP_ROUNDS = 50
const MB = 1_000_000

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const durationMs = Number(values.seconds) * 1_000
const only = values.only?.split(',')

interface Measured {
  readonly attack: string
  readonly answers: Readonly<Record<string, number>>
  readonly healthP50Ms: number
  readonly healthP99Ms: number
  readonly healthMaxMs: number
  readonly unanswered: number
  readonly cpuSeconds: number
  readonly rssMb: { readonly before: number; readonly most: number; readonly after: number }
}

function rssMbOf(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return (pages * 4_096) / MB
}

/** User and system time, in ticks of a hundredth of a second. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Milliseconds until `/health` is answered; infinity when it is not. */
function askHealth(url: string, agent: Agent): Promise<number> {
  const askedAt = performance.now()
  return new Promise((resolve) => {
    const sent = get(`${url}/health`, { agent, timeout: 10_000 }, (res) => {
      res.resume()
      res.on('end', () => resolve(performance.now() - askedAt))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(Number.POSITIVE_INFINITY))
  })
}

/**
 * Ordinary traffic before the attack: code is compiled and memory is taken as in a server that has been running. A long
 * prompt starts the thread that counts tokens.
 */
async function warmUp(url: string): Promise<void> {
  const ask = async (text: string): Promise<void> => {
    const body = JSON.stringify({ model: 'spill-small', max_tokens: 1, messages: [{ role: 'user', content: text }] })
    const headers = { authorization: 'Bearer sk-demo-globex', 'content-type': 'application/json' }
    await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).text()
  }
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    await Promise.all(Array.from({ length: 10 }, () => ask('What is a weir?')))
    if (round % 10 === 0) await ask('A weir holds the water back. '.repeat(10_000))
  }
}

async function measure(name: string): Promise<Measured> {
  const server = await startServer([], { SPILLWAY_STORE_PATH: 'memory:' })
  const agent = new Agent({ keepAlive: true })
  await warmUp(server.url)
  await sleep(2_000)
  const before = rssMbOf(server.pid)
  const cpuBefore = cpuSecondsOf(server.pid)
  let isOver = false
  let most = before
  const sending = name === 'nothing' ? sleep(durationMs, {}) : send(server.url, name)
  const times: Array<Promise<number>> = []
  const probing = (async () => {
    while (!isOver) {
      times.push(askHealth(server.url, agent))
      most = Math.max(most, rssMbOf(server.pid))
      await sleep(PROBE_EVERY_MS)
    }
  })()
  const answers = await sending
  isOver = true
  await probing
  const cpuSeconds = cpuSecondsOf(server.pid) - cpuBefore
  const all = (await Promise.all(times)).sort((a, b) => a - b)
  await sleep(name === 'nothing' ? 0 : REST_MS)
  const after = rssMbOf(server.pid)
  agent.destroy()
  await server.stop('SIGKILL')
  const at = (ratio: number): number => all[Math.min(all.length - 1, Math.floor(all.length * ratio))] ?? 0
  return {
    attack: name,
    answers,
    healthP50Ms: at(0.5),
    healthP99Ms: at(0.99),
    healthMaxMs: at(1),
    unanswered: all.filter((ms) => !Number.isFinite(ms)).length,
    cpuSeconds,
    rssMb: { before, most, after },
  }
}

async function send(url: string, name: string): Promise<Record<string, number>> {
  const worker = new Worker(new URL('./sender.ts', import.meta.url), { workerData: { url, name, durationMs } })
  const [counts] = (await once(worker, 'message')) as [Record<string, number>]
  await worker.terminate()
  return counts
}

const isMet = ({ healthP99Ms, unanswered, rssMb }: Measured): boolean =>
  healthP99Ms <= HEALTH_P99_MS_MAX && unanswered === 0 && rssMb.after - rssMb.before <= RSS_MB_MORE_MAX

const whole = (value: number): string => (Number.isFinite(value) ? value.toFixed(value < 10 ? 1 : 0) : 'never')

function row(measured: Measured): string {
  const { attack, answers, rssMb } = measured
  const told = Object.entries(answers).map(([status, count]) => `${count} × ${status}`)
  return [
    attack.padEnd(18),
    [measured.healthP50Ms, measured.healthP99Ms, measured.healthMaxMs].map((ms) => whole(ms).padStart(6)).join(' '),
    measured.cpuSeconds.toFixed(1).padStart(6),
    [rssMb.before, rssMb.most, rssMb.after].map((mb) => whole(mb).padStart(6)).join(' '),
    (isMet(measured) ? 'met' : 'MISSED').padEnd(6),
    told.join(', '),
  ].join('  ')
}

const names = ['nothing', ...ATTACKS.map(({ name }) => name)].filter((name) => only?.includes(name) ?? true)
if (!values.json) {
  process.stdout.write('                    /health, ms            CPU-s  RSS, MB\n')
  process.stdout.write('attack                p50    p99    max            before   most  after  bar     answers\n')
}
const results: Measured[] = []
for (const name of names) {
  const measured = await measure(name)
  results.push(measured)
  if (!values.json) process.stdout.write(`${row(measured)}\n`)
}
if (values.json) process.stdout.write(`${JSON.stringify(results, undefined, 2)}\n`)
process.exitCode = results.every(isMet) ? 0 : 1
