import { chmodSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Child, ROOT, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, FakeUpstream } from '../support/fake-upstream.ts'
import { RawSocket } from '../support/raw-http.ts'
import { dechunked, framesIn, textIn } from '../support/sse-frames.ts'
import { authorization, METRICS_KEY, MODEL, type Tree, upstreamTree } from '../support/start-platform.ts'

/** How the process ends, well and badly: a child of its own, real signals, real exit codes. */

const CHAT = '/v1/chat/completions'
/** Some answers here are longer than any socket's buffers, and an engine is cut at the bound that was sent to it. */
const chat = { model: MODEL, stream: true, messages: [{ role: 'user', content: 'Hello?' }], max_tokens: 1_000_000 }
const models = [{ name: MODEL, contextTokensMax: 4_000_000 }]

const folder = new TestFolder()
const children: Child[] = []
const sockets: RawSocket[] = []
let upstream: FakeUpstream
/** Lets the stream that waits at its gate go on. */
let openGate = (): void => {}

const frame = (content: string | null, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: content === null ? {} : { content }, finish_reason }] })}\n\n`

/** Says one half, and the other when the gate opens. */
const gated: Behaviour = async ({ res }) => {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write(frame('One half'))
  await new Promise<void>((resolve) => {
    openGate = resolve
  })
  res.write(frame(', the other half.'))
  res.end(`${frame(null, 'stop')}data: [DONE]\n\n`)
}

beforeAll(async () => {
  upstream = await FakeUpstream.start(gated)
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const child of children.splice(0)) await child.end()
})
afterAll(async () => {
  await upstream.close()
  folder.remove()
})

function start(options: ConstructorParameters<typeof Child>[0] = {}): Child {
  const child = new Child(options)
  children.push(child)
  return child
}

interface Running {
  readonly child: Child
  readonly address: string
}

/** A server of its own for each test here, started before the test: on a busy machine that takes longer than the test. */
function useServer(server: Record<string, unknown> = {}): () => Running {
  let running: Running
  beforeEach(async () => {
    const tree = upstreamTree([upstream.url], { server, models })
    // An engine here is silent until the test lets it go on, which is no fault of the engine.
    for (const pool of tree['pools'] as Tree[]) pool['backend'] = { kind: 'http-openai', timeoutMs: 600_000 }
    const config = folder.write('spillway.yaml', tree)
    const child = start({ env: { SPILLWAY_CONFIG: config } })
    const address = await child.address(HOOK_MS)
    // It listens for signals a moment after it has said where it listens.
    expect((await fetch(`${address}/health`)).status).toBe(200)
    running = { child, address }
  })
  return () => running
}
/** Under the suite's limit of 120 s for hooks, so that the sentence is seen. */
const HOOK_MS = 60_000

function connect(address: string): RawSocket {
  const socket = new RawSocket(address)
  sockets.push(socket)
  return socket
}

async function startStream(address: string): Promise<RawSocket> {
  const stream = connect(address).post(CHAT, chat, authorization())
  await stream.until('the first half', (received) => received.includes('One half'))
  return stream
}

/** The registry is read after the server listens: on a busy machine, seconds later. */
async function ready(address: string): Promise<void> {
  await eventually('it is ready', async () => (await fetch(`${address}/health/ready`)).status === 200)
}

const isRefused = async (address: string): Promise<boolean> => {
  const probe = connect(address)
  await eventually('it is decided', () => probe.isClosed || !probe.socket.connecting)
  probe.destroy()
  return probe.isClosed && probe.received === ''
}

describe('SIGTERM', () => {
  // A request that is begun before the signal and ended after it has all the time that a busy machine takes for that.
  const running = useServer({ headersTimeoutMs: 120_000, requestTimeoutMs: 120_000, shutdownGraceMs: 120_000 })

  it('turns readiness off, stops accepting, and lets a stream finish', async () => {
    const { child, address } = running()
    const stream = await startStream(address)
    await ready(address)
    // A question that has begun before the signal and ends after it.
    const probe = connect(address).send('GET /health/ready HTTP/1.1\r\nhost: x\r\n')
    const idle = connect(address).send('GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n')
    await idle.until('it was ready', (received) => received.startsWith('HTTP/1.1 200'))

    child.signal('SIGTERM')
    await idle.closed()
    await eventually('no connection is accepted', () => isRefused(address))
    probe.send('\r\n')
    await probe.until('it is not ready', (received) => received.startsWith('HTTP/1.1 503'))
    expect(probe.received).toContain('shutting down')
    expect(child.exitCode).toBeUndefined()

    openGate()
    expect(await child.exited()).toBe(0)
    const frames = framesIn(dechunked(stream.received))
    expect(textIn(frames)).toBe('One half, the other half.')
    expect(child.err).not.toContain('    at ')
  })

  it('a second time ends it at once', async () => {
    const { child, address } = running()
    await startStream(address)
    child.signal('SIGTERM')
    await eventually('it drains', () => isRefused(address))
    // Signals within a blink count as one: a terminal, npm and our launcher may each send the same.
    let code: number | undefined
    await eventually('it is gone', () => {
      child.signal('SIGTERM')
      code = child.exitCode
      return code !== undefined
    })
    expect(code).toBe(143)
  })

  it('does not tear an answer that a slow reader has not taken yet', async () => {
    const { child, address } = running()
    const content = 'x'.repeat(14_000_000)
    upstream.next(answers({ words: [content] }))
    const reader = connect(address).stopReading()
    reader.post(CHAT, { ...chat, stream: false }, authorization())
    const metrics = async () => (await fetch(`${address}/metrics`, { headers: authorization(METRICS_KEY) })).text()
    await eventually('it is settled', async () => /requests_total\{[^}]*completed/.test(await metrics()))
    child.signal('SIGTERM')
    await eventually('no connection is accepted', () => isRefused(address))
    reader.socket.resume()
    expect(await child.exited()).toBe(0)
    expect(reader.received.length).toBeGreaterThan(14_000_000)
    expect(reader.received.endsWith('}')).toBe(true)
  })

  it('ends an idle server at once', async () => {
    const { child } = running()
    child.signal('SIGINT')
    expect(await child.exited()).toBe(0)
  })
})

describe('SIGTERM with a delay', () => {
  // The test ends it.
  const running = useServer({ shutdownDelayMs: 3_600_000 })

  it('says not ready, goes on answering, and asks clients to connect anew', async () => {
    const { child, address } = running()
    // Not ready for another reason would look like leaving.
    await ready(address)
    const READY = 'GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n'
    const kept = connect(address).send(READY)
    await kept.until('it is answered', (received) => received.includes('\r\n\r\n{'))
    // A request that is under way when the signal comes, and is answered after it.
    const streamed = await startStream(address)
    const whole = connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await eventually('both run', () => upstream.openAnswers === 2)
    expect(kept.received).not.toMatch(/connection: close/i)
    child.signal('SIGTERM')
    await eventually('it is not ready', async () => (await fetch(`${address}/health/ready`)).status === 503)
    // The connection from before is used once more and then closed; no connection is refused.
    kept.send(READY)
    await kept.closed()
    expect(kept.received).toMatch(/connection: close/i)
    upstream.next(answers({ words: ['whole'] }))
    const late = connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await late.closed()
    expect(late.received).toMatch(/^HTTP\/1.1 200 /)
    expect(late.received).toContain('whole')
    // `gated` knows the gate of the last answer, which is the whole one.
    openGate()
    await whole.closed()
    expect(whole.received).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i)
    expect(streamed.isClosed).toBe(false)
    expect(child.exitCode).toBeUndefined()
  })
})

describe('SIGTERM with a grace of 300 ms', () => {
  const running = useServer({ shutdownGraceMs: 300 })

  it('ends what is left after the grace with an error frame and [DONE]', async () => {
    const { child, address } = running()
    const stream = await startStream(address)
    const whole = connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await eventually('both run', () => upstream.openAnswers === 2)
    child.signal('SIGTERM')
    const startedAt = performance.now()
    expect(await child.exited()).toBe(0)
    expect(performance.now() - startedAt).toBeGreaterThan(250)
    const frames = framesIn(dechunked(stream.received))
    expect(frames[0]).toMatchObject({ choices: [{ delta: { content: 'One half' } }] })
    expect(frames.at(-1)!.error).toMatchObject({ code: 'shutting_down', type: 'server_error' })
    expect(whole.received).toMatch(/^HTTP\/1.1 503 /)
    expect(whole.received).toMatch(/retry-after: 1\r\n/i)
    await eventually('the engine is let go', () => upstream.openAnswers === 0)
  })
})

describe('SIGTERM with a grace of 400 ms', () => {
  const running = useServer({ shutdownGraceMs: 400 })

  it('is not held up by clients that do nothing, that send slowly, or that do not read', async () => {
    const { child, address } = running()
    upstream.next(floods)
    const silent = connect(address)
    await eventually('it is connected', () => !silent.socket.connecting)
    const slow = connect(address).send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\nexpect: 100-continue\r\n`,
    )
    slow.send(`content-type: application/json\r\nauthorization: ${authorization()['authorization']}\r\n\r\n`)
    await slow.until('its body is awaited', (received) => received.startsWith('HTTP/1.1 100'))
    const deaf = connect(address).stopReading()
    deaf.post(CHAT, chat, authorization())
    await eventually('it runs', () => upstream.openAnswers === 1)
    child.signal('SIGTERM')
    expect(await child.exited()).toBe(0)
  })
})

/** As much as is taken, for ever. */
const floods: Behaviour = ({ res, isGone }) => {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const more = (): void => {
    while (!isGone() && res.write(frame('x'.repeat(10_000))));
  }
  res.on('drain', more)
  more()
}

describe('a start that cannot be', () => {
  async function failure(options: ConstructorParameters<typeof Child>[0]) {
    const child = start(options)
    const exitCode = await child.exited()
    const lines = child.err.trimEnd().split('\n')
    expect(exitCode).toBeGreaterThan(0)
    expect(child.err).not.toMatch(/^\s+at /m)
    expect(child.out).toBe('')
    for (const line of lines) expect(line).toMatch(/^spillway: .*[.?]$/)
    return { exitCode, lines, text: child.err }
  }

  it('a port in use: one line that says which and what to do', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => {
      taken.listen(0, '127.0.0.1', resolve)
    })
    const { port } = taken.address() as { port: number }
    const { lines } = await failure({ env: { PORT: String(port) } })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(`port ${port} on 127.0.0.1 is in use`)
    expect(lines[0]).toContain('PORT')
    await new Promise((resolve) => {
      taken.close(resolve)
    })
  })

  it.each([
    ['no YAML', 'server: [', /bad\.yaml:\d+: not valid YAML/],
    ['an unknown setting', 'servr:\n  port: 1\n', /servr/],
    ['a wrong type', 'server:\n  port: many\n', /bad\.yaml:2: server\.port/],
    ['no tenants', 'server:\n  port: 0\n', /tenants/],
  ])('a broken configuration: %s', async (_what, text, expected) => {
    const { lines } = await failure({ env: { SPILLWAY_CONFIG: folder.write('bad.yaml', text), PORT: '' } })
    expect(lines[0]).toMatch(expected)
  })

  it('a configuration that is not there', async () => {
    const { lines } = await failure({ env: { SPILLWAY_CONFIG: `${folder.path}/none.yaml` } })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('no such file')
  })

  it('demo keys on an address that others can reach', async () => {
    const { lines } = await failure({ env: { HOST: '0.0.0.0' } })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('demo keys')
  })

  const isRoot = process.getuid?.() === 0
  it.skipIf(isRoot && !isOpenToOthers(ROOT))('a configuration that may not be read', async () => {
    const config = folder.write('secret.yaml', 'server: {}\n')
    chmodSync(config, 0o000)
    chmodSync(folder.path, 0o755)
    const { lines } = await failure({ env: { SPILLWAY_CONFIG: config }, ...(isRoot ? { uid: 65_534 } : {}) })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('No permission to read it')
  })
})

/** Root may read everything, so the child must be somebody else, who must be able to read our files. */
function isOpenToOthers(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o005) === 0o005
  return isOpen && (dirname(path) === path || isOpenToOthers(dirname(path)))
}
