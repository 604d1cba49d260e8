import { chmodSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ChildOptions, ROOT } from '../support/child.ts'
import { CHAT, chat, EndingServers, frame, ready } from '../support/ending-server.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour } from '../support/fake-upstream.ts'
import { dechunked, framesIn } from '../support/sse-frames.ts'
import { authorization, METRICS_KEY } from '../support/start-platform.ts'

/** How the process ends, well and badly: a child of its own for each test, real signals, real exit codes. */

const servers = new EndingServers()

describe('SIGTERM', () => {
  const running = servers.useServer({ headersTimeoutMs: 120_000, requestTimeoutMs: 120_000, shutdownGraceMs: 120_000 })

  it('a second time ends it at once', async () => {
    const { child, address } = running()
    await servers.startStream(address)
    child.signal('SIGTERM')
    await eventually('it drains', () => servers.isRefused(address))
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
    servers.upstream.next(answers({ words: [content] }))
    const reader = servers.connect(address).stopReading()
    reader.post(CHAT, { ...chat, stream: false }, authorization())
    const metrics = async () => (await fetch(`${address}/metrics`, { headers: authorization(METRICS_KEY) })).text()
    await eventually('it is settled', async () => /requests_total\{[^}]*completed/.test(await metrics()))
    child.signal('SIGTERM')
    await eventually('no connection is accepted', () => servers.isRefused(address))
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
  const running = servers.useServer({ shutdownDelayMs: 3_600_000 })

  it('says not ready, goes on answering, and asks clients to connect anew', async () => {
    const { child, address } = running()
    // Not ready for another reason would look like leaving.
    await ready(address)
    const READY = 'GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n'
    const kept = servers.connect(address).send(READY)
    await kept.until('it is answered', (received) => received.includes('\r\n\r\n{'))
    // A request that is under way when the signal comes, and is answered after it.
    const streamed = await servers.startStream(address)
    const whole = servers.connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await eventually('both run', () => servers.upstream.openAnswers === 2)
    expect(kept.received).not.toMatch(/connection: close/i)
    child.signal('SIGTERM')
    await eventually('it is not ready', async () => (await fetch(`${address}/health/ready`)).status === 503)
    // The connection from before is used once more and then closed; no connection is refused.
    kept.send(READY)
    await kept.closed()
    expect(kept.received).toMatch(/connection: close/i)
    servers.upstream.next(answers({ words: ['whole'] }))
    const late = servers.connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await late.closed()
    expect(late.received).toMatch(/^HTTP\/1.1 200 /)
    expect(late.received).toContain('whole')
    // `openGate` is for the last answer, which is the whole one.
    servers.openGate()
    await whole.closed()
    expect(whole.received).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i)
    expect(streamed.isClosed).toBe(false)
    expect(child.exitCode).toBeUndefined()
  })
})

describe('SIGTERM with a grace of 300 ms', () => {
  const running = servers.useServer({ shutdownGraceMs: 300 })

  it('ends what is left after the grace with an error frame and [DONE]', async () => {
    const { child, address } = running()
    const stream = await servers.startStream(address)
    const whole = servers.connect(address).post(CHAT, { ...chat, stream: false }, authorization())
    await eventually('both run', () => servers.upstream.openAnswers === 2)
    child.signal('SIGTERM')
    const startedAt = performance.now()
    expect(await child.exited()).toBe(0)
    expect(performance.now() - startedAt).toBeGreaterThan(250)
    const frames = framesIn(dechunked(stream.received))
    expect(frames[0]).toMatchObject({ choices: [{ delta: { content: 'One half' } }] })
    expect(frames.at(-1)!.error).toMatchObject({ code: 'shutting_down', type: 'server_error' })
    expect(whole.received).toMatch(/^HTTP\/1.1 503 /)
    expect(whole.received).toMatch(/retry-after: 1\r\n/i)
    await eventually('the engine is let go', () => servers.upstream.openAnswers === 0)
  })
})

describe('SIGTERM with a grace of 400 ms', () => {
  const running = servers.useServer({ shutdownGraceMs: 400 })

  it('is not held up by clients that do nothing, that send slowly, or that do not read', async () => {
    const { child, address } = running()
    servers.upstream.next(floods)
    const silent = servers.connect(address)
    await eventually('it is connected', () => !silent.socket.connecting)
    const slow = servers
      .connect(address)
      .send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\nexpect: 100-continue\r\n`)
    slow.send(`content-type: application/json\r\nauthorization: ${authorization()['authorization']}\r\n\r\n`)
    await slow.until('its body is awaited', (received) => received.startsWith('HTTP/1.1 100'))
    const deaf = servers.connect(address).stopReading()
    deaf.post(CHAT, chat, authorization())
    await eventually('it runs', () => servers.upstream.openAnswers === 1)
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
  async function failure(options: ChildOptions) {
    const child = servers.start(options)
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
    const { lines } = await failure({ env: { SPILLWAY_CONFIG: servers.folder.write('bad.yaml', text), PORT: '' } })
    expect(lines[0]).toMatch(expected)
  })

  it('a configuration that is not there', async () => {
    const { lines } = await failure({ env: { SPILLWAY_CONFIG: `${servers.folder.path}/none.yaml` } })
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
    const config = servers.folder.write('secret.yaml', 'server: {}\n')
    chmodSync(config, 0o000)
    chmodSync(servers.folder.path, 0o755)
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
