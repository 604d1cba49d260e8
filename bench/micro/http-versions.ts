import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { Socket } from 'node:net'
import { argv, cpuUsage } from 'node:process'
import { Cancellation } from '../../src/base/cancellation.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { openFrontDoor } from '../../src/gateway/http-front-door.ts'
import { listen } from '../../src/gateway/http-listen.ts'
import { makeHttpServer, type Route } from '../../src/gateway/http-server.ts'
import { SseSink } from '../../src/gateway/http-sinks.ts'
import { IN_OPENAI_WORDS } from '../../src/wire/openai-dialects.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: where streams share connections, one event takes no more than 1.1 times the processor time over HTTP/2 than over
 * HTTP/1. Beside it: HTTP/2 with one stream on each connection, and what looking at the first bytes of a connection takes.
 *
 * The server is a process of its own: the gateway's front door and its sink, without an engine. 64 streams at a time,
 * an event every 5 ms on each: over 64 connections of HTTP/1, over 64 of HTTP/2, and over two of HTTP/2. A second measurement opens a new
 * connection of HTTP/1 for each request, with and without the look. The ways take turns; a ratio is taken within a
 * round. `--rounds N` (10).
 */
const STREAMS = 64
const EVENTS = 200
const EVENT_EVERY_MS = 5
const CONNECTIONS = 1_500
const LIMITS = { headersTimeoutMs: 10_000, requestTimeoutMs: 10_000, idleTimeoutMs: 60_000 }

// ── the server, in a process of its own ──

async function serve(): Promise<void> {
  const clock = new LiveClock()
  const running = new Set<() => boolean>()
  setInterval(() => {
    for (const step of running) if (!step()) running.delete(step)
  }, EVENT_EVERY_MS)
  const stream: Route = {
    method: 'GET',
    path: '/stream',
    handle(exchange) {
      const sink = new SseSink({
        exchange,
        identity: { kind: 'chat', id: 'chatcmpl-1', createdAtS: 1, includesUsage: false, model: 'm' },
        wording: IN_OPENAI_WORDS,
        clock,
        cancellation: new Cancellation(),
        rateLimits: () => [],
        stalledReaderUs: 60_000_000,
        keepAliveUs: 60_000_000,
        aheadBytesMax: 65_536,
        listsPassages: false,
      })
      sink.start({ model: 'm', rung: 'full' })
      let left = EVENTS
      running.add(() => {
        void sink.write({ tokens: 1, choices: [{ index: 0, content: ' word', finishReason: null }] })
        left -= 1
        if (left === 0) sink.finish({ promptTokens: 1, cachedTokens: 0, outputTokens: EVENTS })
        return left > 0
      })
    },
  }
  const small: Route = { method: 'GET', path: '/small', handle: (exchange) => exchange.sendJson(200, '{}') }
  const start = (http2: boolean): Promise<string> => {
    const makeRequestId = (): string => 'req_1'
    const options = { ...LIMITS, basePath: '', connectionsMax: 10_000, makeRequestId, onFault: console.error }
    const server = makeHttpServer([stream, small], options)
    openFrontDoor(server, { ...options, clock, http2, streamsMax: 1_000, aheadBytesMax: 65_536 })
    return listen(server, { host: '127.0.0.1', port: 0 })
  }
  const urls = { looking: await start(true), plain: await start(false) }
  let before = cpuUsage()
  process.on('message', (word) => {
    const { user, system } = cpuUsage(before)
    if (word === 'begin') before = cpuUsage()
    else process.send?.({ us: user + system })
  })
  process.send?.(urls)
}

// ── the clients ──

function streamOverOne(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`${url}/stream`, { agent }, (res) => res.resume().on('end', resolve)).on('error', reject)
  })
}

function streamOverTwo(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    session.request({ ':path': '/stream' }).on('error', reject).on('end', resolve).resume()
  })
}

function connectOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new Socket()
    socket
      .on('error', reject)
      .on('close', () => resolve())
      .resume()
    socket.connect(port, '127.0.0.1')
    socket.write('GET /small HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  })
}

async function manyConnections(url: string): Promise<void> {
  const port = Number(new URL(url).port)
  let left = CONNECTIONS
  const loop = async (): Promise<void> => {
    while (left-- > 0) await connectOnce(port)
  }
  await Promise.all(Array.from({ length: 16 }, loop))
}

async function cpuOf(child: ChildProcess, work: () => Promise<unknown>): Promise<number> {
  child.send('begin')
  await work()
  child.send('end')
  const [{ us }] = (await once(child, 'message')) as [{ us: number }]
  return us
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number

async function measure(rounds: number): Promise<Finding[]> {
  const child = fork(import.meta.filename, ['--serve'])
  const [{ looking, plain }] = (await once(child, 'message')) as [{ looking: string; plain: string }]
  const agent = new Agent({ keepAlive: true, maxSockets: STREAMS })
  const sessions = Array.from({ length: STREAMS }, () => connect(looking))
  const all = (one: (i: number) => Promise<void>) => () =>
    Promise.all(Array.from({ length: STREAMS }, (_, i) => one(i)))
  const ways = {
    one: { work: all(() => streamOverOne(looking, agent)), per: STREAMS * EVENTS },
    two: { work: all((i) => streamOverTwo(sessions[i] as ClientHttp2Session)), per: STREAMS * EVENTS },
    shared: { work: all((i) => streamOverTwo(sessions[i % 2] as ClientHttp2Session)), per: STREAMS * EVENTS },
    looked: { work: () => manyConnections(looking), per: CONNECTIONS },
    unlooked: { work: () => manyConnections(plain), per: CONNECTIONS },
  }
  type Way = keyof typeof ways
  const names = Object.keys(ways) as Way[]
  const us: Record<Way, number[]> = { one: [], two: [], shared: [], looked: [], unlooked: [] }
  for (let round = -1; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(round + 1 + i) % names.length] as Way
      const spent = (await cpuOf(child, ways[name].work)) / ways[name].per
      // The first round warms up.
      if (round >= 0) us[name].push(spent)
    }
  }
  for (const session of sessions) session.destroy()
  agent.destroy()
  child.kill()
  const ratio = (a: Way, b: Way): number => median(us[a].map((each, i) => each / (us[b][i] as number)))
  return [
    { name: 'an event over HTTP/1', value: median(us.one), unit: 'µs of processor' },
    { name: 'an event over HTTP/2, 64 connections', value: median(us.two), unit: 'µs of processor' },
    { name: 'an event over HTTP/2, two connections', value: median(us.shared), unit: 'µs of processor' },
    { name: '64 of HTTP/2 over HTTP/1, by round', value: ratio('two', 'one'), unit: '' },
    { name: 'two of HTTP/2 over HTTP/1, by round', value: ratio('shared', 'one'), unit: '', below: 1.1 },
    { name: 'a connection with one request, not looked at', value: median(us.unlooked), unit: 'µs of processor' },
    { name: 'a connection with one request, looked at', value: median(us.looked), unit: 'µs of processor' },
    { name: 'looked at over not, by round', value: ratio('looked', 'unlooked'), unit: '' },
  ]
}

if (argv.includes('--serve')) await serve()
else {
  const at = argv.indexOf('--rounds')
  const rounds = at < 0 ? 10 : Number(argv[at + 1])
  tell('HTTP/2 costs no more than HTTP/1 for an event of a stream', await measure(rounds))
}
