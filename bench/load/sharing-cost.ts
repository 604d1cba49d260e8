import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request as httpRequest } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hashKey } from '../../src/config/key-hash.ts'

/**
 * What does sharing cost a request? One gateway with 1,000 active tenants, each with limits of requests and tokens, before an
 * upstream that answers at once: CPU time of the gateway's process per request, with `sharing.redis.url` and without, in turns.
 * CPU time, not wall time, so that other work on the machine disturbs it little; the rate matters all the same, because
 * renewals go on at their own pace.
 *
 *     node bench/load/sharing-cost.ts [--tenants 1000] [--seconds 10] [--rate 400] [--rounds 3]
 */
const { values } = parseArgs({
  options: {
    tenants: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '3' },
  },
})
const [tenantCount, seconds, rate, rounds] = [values.tenants, values.seconds, values.rate, values.rounds].map(
  Number,
) as [number, number, number, number]
const REDIS = 'redis-server'
const ROOT = join(import.meta.dirname, '..', '..')
const ANSWER = JSON.stringify({
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
})
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Is it so?' }], max_tokens: 4 })
const keyOf = (i: number): string => `sk-bench-${i}`
const folder = mkdtempSync(join(tmpdir(), 'spillway-sharing-cost-'))
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createNetServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

function configFile(upstream: string, redisUrl: string | undefined): string {
  const allowance = { requests: { perMinute: 60_000, burst: 6_000 }, tokens: { perMinute: 6_000_000, burst: 600_000 } }
  const tree = {
    server: { port: 0, ingress: { requestsPerMinute: 1_000_000, bytesPerMinute: 1_000_000_000 } },
    logging: { level: 'error' },
    store: { path: 'memory:' },
    models: [{ name: 'm' }],
    pools: [
      {
        model: 'm',
        backend: { kind: 'http-openai', engine: 'none' },
        replicas: [upstream],
        limit: { kind: 'fixed', concurrencyMax: 256 },
      },
    ],
    tenants: Array.from({ length: tenantCount }, (_, i) => ({
      id: `t${i}`,
      allowance,
      keys: [{ id: `k${i}`, hash: hashKey(keyOf(i)) }],
    })),
    ...(redisUrl !== undefined && { sharing: { redis: { url: redisUrl } } }),
  }
  const path = join(folder, `${redisUrl === undefined ? 'alone' : 'shared'}.yaml`)
  writeFileSync(path, JSON.stringify(tree))
  return path
}

interface Gateway {
  readonly url: URL
  readonly pid: number
  stop(): Promise<void>
}

function startGateway(path: string): Promise<Gateway> {
  const child = spawn(process.execPath, [join(ROOT, 'bin/spillway.mjs'), 'serve', '--config', path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return new Promise((resolve, reject) => {
    void ended.then(() => reject(new Error(`the gateway ended: ${said}`)))
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      said += String(data)
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (found === null || child.pid === undefined) return
      const stop = (): Promise<void> => {
        child.kill('SIGTERM')
        return ended
      }
      resolve({ url: new URL(found[0]), pid: child.pid, stop })
    })
  })
}

/** User and system time of a process, in milliseconds: Linux counts in hundredths of a second. */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

function ask(url: URL, i: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${keyOf(i)}` }
    const sent = httpRequest(
      { host: url.hostname, port: url.port, path: '/v1/chat/completions', method: 'POST', headers, agent },
      (res) => {
        res.resume()
        res.on('end', () => resolve(res.statusCode ?? 0))
      },
    )
    sent.on('error', reject)
    sent.end(BODY)
  })
}

/** Sends at the rate, one tenant after the other; answers CPU milliseconds per request. */
async function measure(gateway: Gateway): Promise<{ cpuMs: number; count: number; refused: number }> {
  const before = cpuMsOf(gateway.pid)
  const endAt = performance.now() + seconds * 1_000
  const startAt = performance.now()
  const waiting = new Set<Promise<unknown>>()
  let [count, refused] = [0, 0]
  while (performance.now() < endAt) {
    const due = ((performance.now() - startAt) / 1_000) * rate
    while (count < due && waiting.size < 256) {
      const sent = ask(gateway.url, count++ % tenantCount).then((status) => {
        if (status !== 200) refused++
      })
      waiting.add(sent)
      void sent.finally(() => waiting.delete(sent))
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all(waiting)
  return { cpuMs: (cpuMsOf(gateway.pid) - before) / count, count, refused }
}

const upstream = createServer((req, res) => {
  req.resume()
  req.on('end', () => {
    res.setHeader('content-type', 'application/json')
    res.end(ANSWER)
  })
}).listen(0, '127.0.0.1')
await new Promise((resolve) => upstream.once('listening', resolve))
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
const redisPort = await freePort()
const redis = spawn(REDIS, ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--dir', folder], {
  stdio: 'ignore',
})
const [alone, shared] = [
  await startGateway(configFile(upstreamUrl, undefined)),
  await startGateway(configFile(upstreamUrl, `redis://127.0.0.1:${redisPort}`)),
]
for (const gateway of [alone, shared]) await measure(gateway)
const ratios: number[] = []
for (let round = 0; round < rounds; round++) {
  const redisBefore = cpuMsOf(redis.pid as number)
  // The order changes from round to round: neither is always the second.
  const order = round % 2 === 0 ? [alone, shared] : [shared, alone]
  const measured = new Map<Gateway, Awaited<ReturnType<typeof measure>>>()
  for (const gateway of order) measured.set(gateway, await measure(gateway))
  const [a, s] = [measured.get(alone), measured.get(shared)]
  if (a === undefined || s === undefined) continue
  ratios.push(s.cpuMs / a.cpuMs)
  const redisMs = cpuMsOf(redis.pid as number) - redisBefore
  console.log(
    `round ${round + 1}: alone ${a.cpuMs.toFixed(3)} ms of CPU a request (${a.count}, ${a.refused} not 200), ` +
      `shared ${s.cpuMs.toFixed(3)} (${s.count}, ${s.refused}); ratio ${(s.cpuMs / a.cpuMs).toFixed(3)}; Redis used ${redisMs} ms`,
  )
}
ratios.sort((x, y) => x - y)
console.log(`median ratio ${(ratios[Math.floor(ratios.length / 2)] ?? Number.NaN).toFixed(3)}; the bar is 1.05`)
await Promise.all([alone.stop(), shared.stop()])
redis.kill('SIGINT')
upstream.close()
agent.destroy()
rmSync(folder, { recursive: true, force: true })
