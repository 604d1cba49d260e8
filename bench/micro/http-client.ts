import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { argv, cpuUsage, memoryUsage } from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Dispatcher, Pool } from 'undici'
import { type PlainAsk, PlainPool } from '../../src/backends/http-plain-pool.ts'
import { HTTP_UPSTREAM_DEFAULTS } from '../../src/backends/http-upstream.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: behind a plain `http:` URL our own client takes less processor time than undici for whole answers and for the
 * chunks of streams, and an open stream holds less of the heap. Node's own `http` is measured beside them.
 *
 * All clients are asked through the same handler, with the options that `http-upstream.ts` gives them, and talk to the
 * same upstream, which is a process of its own and does as little as it can. They take turns in slices of a second; a
 * ratio is taken within a round of three neighbouring slices, where all had the same neighbours on the machine, and each
 * round begins with another client. `--rounds N` (10).
 */
const SLICE_MS = 1_000
const CONNECTIONS = 64
const HELD_STREAMS = 2_000
const HELD_ROUNDS = 3
/** Two and a half kilobytes: a chat with some history. */
const BODY = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'word '.repeat(500) }] })
const HEADERS = ['content-type', 'application/json', 'authorization', 'Bearer sk-bench']
const CHUNKS_PER_STREAM = 50
/** As engines send them at 100 tokens a second. */
const CHUNK_EVERY_MS = 10

const CLIENTS = ['undici', 'node:http', 'our own'] as const
type ClientName = (typeof CLIENTS)[number]
type Path = '/whole' | '/stream' | '/held'
type Ask = (ask: PlainAsk, handler: Dispatcher.DispatchHandler) => void

const event = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'word' } }] })}\n\n`
const CHUNK = `${event.length.toString(16)}\r\n${event}\r\n`
const WHOLE = JSON.stringify({
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(180) } }],
})

// ── the upstream, in a process of its own ──

function serveUpstream(): void {
  const streams = new Map<Socket, number>()
  const answer = (socket: Socket, path: string): void => {
    if (path === '/whole') {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE.length}\r\n\r\n${WHOLE}`,
      )
      return
    }
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${CHUNK}`)
    if (path === '/stream') streams.set(socket, CHUNKS_PER_STREAM - 1)
  }
  const server = createServer({ noDelay: true }, (socket) => {
    let text = ''
    socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('close', () => streams.delete(socket))
    socket.on('data', (part) => {
      text += part
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
      if (text.length < headEnd + 4 + length) return
      const path = text.slice(text.indexOf(' ') + 1, text.indexOf(' HTTP'))
      text = ''
      answer(socket, path)
    })
  })
  setInterval(() => {
    for (const [socket, left] of streams) {
      socket.write(left > 0 ? CHUNK : '0\r\n\r\n')
      if (left > 0) streams.set(socket, left - 1)
      else streams.delete(socket)
    }
  }, CHUNK_EVERY_MS)
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : undefined)
  })
}

// ── the clients ──

function makeClients(port: number): { asks: Record<ClientName, Ask>; readonly close: () => Promise<unknown> } {
  const { connectTimeoutMs, silenceMsMax, connectionsMax, keepAliveMs } = HTTP_UPSTREAM_DEFAULTS
  const undici = new Pool(`http://127.0.0.1:${port}`, {
    connections: connectionsMax,
    pipelining: 1,
    connectTimeout: connectTimeoutMs,
    headersTimeout: silenceMsMax,
    bodyTimeout: silenceMsMax,
    keepAliveTimeout: keepAliveMs,
  })
  const authority = `127.0.0.1:${port}`
  const plain = new PlainPool({ ...HTTP_UPSTREAM_DEFAULTS, host: '127.0.0.1', port, authority })
  const agent = new Agent({ keepAlive: true, maxSockets: connectionsMax, timeout: silenceMsMax })
  return {
    asks: {
      undici: (ask, handler) => void undici.dispatch({ ...ask, method: 'POST' } as Dispatcher.DispatchOptions, handler),
      'node:http': (ask, handler) => askNode(agent, port, ask, handler),
      'our own': (ask, handler) => plain.dispatch(ask, handler),
    },
    close: () => {
      agent.destroy()
      return Promise.all([undici.destroy(), plain.close()])
    },
  }
}

/** What the handlers of this bench listen to, told by Node's own client. */
function askNode(
  agent: Agent,
  port: number,
  { path, headers, body }: PlainAsk,
  handler: Dispatcher.DispatchHandler,
): void {
  const controller = {} as Dispatcher.DispatchController
  const named: Record<string, string> = { 'content-length': String(body.length) }
  for (let i = 0; i + 1 < headers.length; i += 2) named[headers[i] as string] = headers[i + 1] as string
  const asked = request({ agent, host: '127.0.0.1', port, path, method: 'POST', headers: named }, (response) => {
    response.on('data', (part: Buffer) => handler.onResponseData?.(controller, part))
    response.on('end', () => handler.onResponseEnd?.(controller, {}))
  })
  asked.on('error', (error) => handler.onResponseError?.(controller, error))
  asked.end(body)
}

/** One answer, read to its end; resolves with its bytes. */
function askOnce(ask: Ask, path: Path): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    ask(
      { path, headers: HEADERS, body: BODY },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData(_, part) {
          bytes += part.length
        },
        onResponseEnd: () => resolve(bytes),
        onResponseError: (_, error) => reject(error),
      },
    )
  })
}

/** Microseconds of processor time for one answer, with `CONNECTIONS` of them at a time. */
async function slice(ask: Ask, path: '/whole' | '/stream'): Promise<number> {
  const expected = path === '/whole' ? WHOLE.length : CHUNKS_PER_STREAM * event.length
  const before = cpuUsage()
  const until = performance.now() + SLICE_MS
  let count = 0
  const loop = async (): Promise<void> => {
    do {
      const bytes = await askOnce(ask, path)
      if (bytes !== expected) throw new Error(`an answer of ${bytes} bytes instead of ${expected}`)
      count++
    } while (performance.now() < until)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, loop))
  const { user, system } = cpuUsage(before)
  return (user + system) / count
}

/** Per client and round. */
type Rounds = Record<ClientName, number[]>

async function takeTurns(asks: Record<ClientName, Ask>, path: '/whole' | '/stream', count: number): Promise<Rounds> {
  for (const ask of Object.values(asks)) await slice(ask, path)
  const us: Rounds = { undici: [], 'node:http': [], 'our own': [] }
  for (let round = 0; round < count; round++) {
    for (let i = 0; i < CLIENTS.length; i++) {
      const name = CLIENTS[(round + i) % CLIENTS.length] as ClientName
      us[name].push(await slice(asks[name], path))
    }
  }
  return us
}

/** Kilobytes of heap and buffers that one open stream holds: in a process of its own, where nothing else is freed. */
async function heldKb(name: ClientName, port: number): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { asks, close } = makeClients(port)
  // The first request brings what is there once and for all.
  await askOnce(asks[name], '/whole')
  const heldBytes = (): number => {
    collect()
    const { heapUsed, external } = memoryUsage()
    return heapUsed + external
  }
  const before = heldBytes()
  let open = 0
  for (let i = 0; i < HELD_STREAMS; i++) {
    asks[name](
      { path: '/held', headers: HEADERS, body: BODY },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: () => void open++,
        onResponseEnd() {},
        onResponseError() {},
      },
    )
    if (i % 200 === 199) while (open < i + 1) await pause(5)
  }
  const kb = (heldBytes() - before) / HELD_STREAMS / 1_000
  await close()
  return kb
}

// ── what comes out ──

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number

function findingsOf(what: string, us: Rounds, per: number): Finding[] {
  return CLIENTS.flatMap((name): Finding[] => {
    const own: Finding = { name: `${what}: ${name}`, value: median(us[name]) / per, unit: 'µs of processor' }
    if (name === 'undici') return [own]
    const ratios = us[name].map((each, i) => each / (us.undici[i] as number))
    const claim = name === 'our own' ? { below: 1 } : {}
    return [
      own,
      { name: `${what}: ${name} ÷ undici, median`, value: median(ratios), unit: '', ...claim },
      { name: `${what}: ${name} ÷ undici, lowest`, value: Math.min(...ratios), unit: '' },
      { name: `${what}: ${name} ÷ undici, highest`, value: Math.max(...ratios), unit: '' },
    ]
  })
}

async function main(upstream: ChildProcess): Promise<void> {
  const [port] = (await once(upstream, 'message')) as [number]
  const rounds = argv.includes('--rounds') ? Number(argv[argv.indexOf('--rounds') + 1]) : 10
  const { asks, close } = makeClients(port)
  const whole = await takeTurns(asks, '/whole', rounds)
  const streams = await takeTurns(asks, '/stream', rounds)
  await close()
  const held: Rounds = { undici: [], 'node:http': [], 'our own': [] }
  for (let round = 0; round < HELD_ROUNDS; round++) {
    for (const name of CLIENTS) {
      const [kb] = (await once(fork(import.meta.filename, ['--held', name, String(port)]), 'message')) as [number]
      held[name].push(kb)
    }
  }
  upstream.kill()
  tell(`HTTP/1.1 clients, ${CONNECTIONS} connections, ${rounds} rounds`, [
    ...findingsOf('whole answer', whole, 1),
    ...findingsOf('chunk', streams, CHUNKS_PER_STREAM),
    ...CLIENTS.map((name) => ({ name: `open stream: ${name}`, value: median(held[name]), unit: 'kB of heap' })),
    { name: 'open stream: our own ÷ undici', value: median(held['our own']) / median(held.undici), unit: '', below: 1 },
  ])
}

const [, , role, name, port] = argv
if (role === '--upstream') serveUpstream()
else if (role === '--held') process.send?.(await heldKb(name as ClientName, Number(port)))
else await main(fork(import.meta.filename, ['--upstream']))
