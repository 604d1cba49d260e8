import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { RawSocket } from '../support/raw-http.ts'
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  GET_HEALTH,
  headerBlock,
  PREFACE_TEXT,
  RawTwo,
} from '../support/raw-http-two.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

/** HTTP/2 with prior knowledge, on the port of HTTP/1. */
const CHAT = '/v1/chat/completions'
const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 3 }

const open: Array<{ close(): unknown }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(overrides: Tree = {}): Promise<TestPlatform> {
  const platform = await startPlatform(testTree(overrides))
  open.push(platform)
  return platform
}

function client(address: string): ClientHttp2Session {
  const session = connect(address)
  session.on('error', () => {})
  open.push({ close: () => session.destroy() })
  return session
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly reset: number
}

function ask(
  session: ClientHttp2Session,
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
    const stream = session.request({
      ':path': path,
      ':method': body === undefined ? 'GET' : 'POST',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...authorization(ACME_KEY),
      ...more,
    })
    let headers: IncomingHttpHeaders & { ':status'?: number | undefined } = {}
    let text = ''
    stream.setEncoding('utf8')
    stream.on('response', (received) => {
      headers = received
    })
    stream.on('data', (part: string) => {
      text += part
    })
    stream.on('error', reject)
    stream.on('close', () => resolve({ status: headers[':status'] ?? 0, headers, text, reset: stream.rstCode ?? 0 }))
    if (body !== undefined) stream.end(sent)
  })
}

const chunk = (content: string, finish_reason: string | null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`

describe('HTTP/2', () => {
  it('serves the same routes as HTTP/1 on the same port: whole, streamed, errors, HEAD', async () => {
    const platform = await start()
    const { address } = platform
    const session = client(address)
    const whole = await ask(session, CHAT, body)
    expect(whole.status).toBe(200)
    expect(checked('chat', JSON.parse(whole.text))).toMatchObject({ model: MODEL })
    expect(whole.headers['x-request-id']).toMatch(/^req_/)
    const streamed = await ask(session, CHAT, { ...body, stream: true })
    expect(streamed).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
    expect(streamed.text).toMatch(/^data: .*data: \[DONE\]\n\n$/s)
    expect(await platform.settled(String(streamed.headers['x-request-id']))).toMatchObject({ outcome: 'completed' })
    const wrong = await ask(session, CHAT, body, authorization('sk-wrong'))
    expect(wrong.status).toBe(401)
    expect(checked('error', JSON.parse(wrong.text))).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect(await ask(session, '/nowhere')).toMatchObject({ status: 404 })
    expect(await ask(session, '/v1/models', undefined, { ':method': 'HEAD' })).toMatchObject({ status: 200, text: '' })
    expect((await fetch(`${address}/health/ready`)).status).toBe(200)
  })

  it('begins with a preface that comes in pieces', async () => {
    const { address } = await start()
    const raw = new RawTwo(address, false)
    open.push({ close: () => raw.socket.destroy() })
    for (const letter of PREFACE_TEXT) {
      raw.send(Buffer.from(letter))
      await new Promise(setImmediate)
    }
    raw.send(frame(FRAME.settings, 0, 0), frame(FRAME.headers, END_STREAM | END_HEADERS, 1, GET_HEALTH))
    await eventually('an answer', () => raw.count(FRAME.data) >= 1)
    expect(raw.count(FRAME.headers)).toBe(1)
  })

  it('is not spoken where it is off', async () => {
    const { address } = await start({ server: { http2: false } })
    const socket = new RawSocket(address).send(PREFACE_TEXT)
    await socket.closed()
    expect(socket.received).toContain('invalid_http')
  })

  it('a stream that the client resets is called off; the others on its connection go on', async () => {
    const upstream = await FakeUpstream.start(({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(chunk('Once', null))
    })
    open.push(upstream)
    const platform = await startPlatform(upstreamTree([upstream.url]))
    open.push(platform)
    const session = client(platform.address)
    const stream = session.request({
      ':path': CHAT,
      ':method': 'POST',
      'content-type': 'application/json',
      ...authorization(),
    })
    stream.on('error', () => {})
    stream.end(JSON.stringify({ ...body, stream: true, max_tokens: 1_000_000 }))
    await new Promise((resolve) => stream.once('data', resolve))
    stream.close(constants.NGHTTP2_CANCEL)
    const settled = await eventually('it settles', () => platform.entries.find((entry) => entry.kind === 'settled'))
    expect(settled).toMatchObject({ outcome: 'cancelled', because: 'client-gone' })
    expect(await ask(session, '/v1/models')).toMatchObject({ status: 200 })
  })

  it('a thousand streams of one connection are answered, and the client is told that it may have no more', async () => {
    const { address } = await start({
      server: { streamsMax: 1_000 },
      queue: { requestsMax: 2_000 },
      pools: [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 4 }],
    })
    const session = client(address)
    await eventually('the settings', () => session.remoteSettings?.maxConcurrentStreams === 1_000)
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () => ask(session, CHAT, { ...body, stream: true })),
    )
    const statuses = new Map<number, number>()
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    expect([...statuses]).toEqual([[200, 1_000]])
    expect(answers.every(({ text }) => text.endsWith('data: [DONE]\n\n'))).toBe(true)
  }, 60_000)

  it('a stream beyond the bound is refused; of a client that has taken note of the bound, the connection ends', async () => {
    const { address } = await start({ server: { streamsMax: 2 } })
    const post = headerBlock({ ':method': 'POST', ':scheme': 'http', ':path': '/v1/completions', ':authority': 'x' })
    const asks = [1, 3, 5].map((id) => frame(FRAME.headers, END_HEADERS, id, post))
    const early = new RawTwo(address).send(...asks)
    open.push({ close: () => early.socket.destroy() })
    await eventually('a refusal', () => early.resets.some(([id]) => id === 5))
    expect(early.resets.find(([id]) => id === 5)).toEqual([5, constants.NGHTTP2_REFUSED_STREAM])
    const late = new RawTwo(address).send(frame(FRAME.settings, ACK, 0), ...asks)
    await late.closed()
    expect(late.count(FRAME.goaway)).toBe(1)
  })

  it('an allowance for an address holds for streams as for connections', async () => {
    // One at once, and then one in ten seconds: a busy machine may need as long for all of them.
    const { address } = await start({ server: { ingress: { requestsPerMinute: 6 } } })
    const session = client(address)
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => ask(session, '/v1/models', undefined, authorization('sk-no'))),
    )
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThanOrEqual(26)
    expect(refused[0]?.headers['retry-after']).toBeDefined()
  })

  it('a body that is too large is refused without being read, and the connection stays', async () => {
    const { address } = await start({ server: { bodyBytesMax: 1_000 } })
    const session = client(address)
    const large = await ask(session, CHAT, JSON.stringify({ ...body, user: 'x'.repeat(3_000_000) }))
    expect(large.status).toBe(413)
    expect(checked('error', JSON.parse(large.text))).toMatchObject({ error: { code: 'request_too_large' } })
    for (let i = 0; i < 5; i++) expect((await ask(session, CHAT, 'x'.repeat(500_000))).status).toBe(413)
    expect(await ask(session, CHAT, body)).toMatchObject({ status: 200 })
  })

  it('a body that does not come is given up', async () => {
    const { address } = await start({ server: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_000 } })
    const session = client(address)
    const stream = session.request({
      ':path': CHAT,
      ':method': 'POST',
      'content-type': 'application/json',
      ...authorization(),
    })
    stream.on('error', () => {})
    let status = 0
    let text = ''
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
    })
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    stream.write('{"model":')
    await eventually('the stream closes', () => stream.closed)
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'request_too_slow' } })
  })

  it('a connection without requests is closed: soon when it never had one, later when it is idle', async () => {
    const { address } = await start({ server: { headersTimeoutMs: 200, idleTimeoutMs: 60_000 } })
    const silent = new RawTwo(address)
    open.push({ close: () => silent.socket.destroy() })
    await silent.closed()
    const idle = await start({ server: { idleTimeoutMs: 200 } })
    const session = client(idle.address)
    expect(await ask(session, CHAT, body)).toMatchObject({ status: 200 })
    await eventually('the connection closes', () => session.closed)
  })

  it('stopping lets the streams end, tells the client to open no more, and closes', async () => {
    let release: () => void = () => {}
    const upstream = await FakeUpstream.start(({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(chunk('Once', null))
      release = () => res.end(`${chunk('.', 'stop')}data: [DONE]\n\n`)
    })
    const platform = await startPlatform(upstreamTree([upstream.url]))
    open.push(upstream)
    const session = client(platform.address)
    const idle = client(platform.address)
    expect(await ask(idle, '/health')).toMatchObject({ status: 200 })
    const running = ask(session, CHAT, { ...body, stream: true })
    await eventually('it runs', () => upstream.seen.length > 0)
    let goaway = 0
    session.on('goaway', () => {
      goaway += 1
    })
    const closed = platform.close()
    await eventually('the client is told', () => goaway > 0 && idle.closed)
    release()
    expect((await running).text).toMatch(/data: \[DONE\]\n\n$/)
    await closed
  })
})

describe('floods on an HTTP/2 connection are bounded', () => {
  const get = (streamId: number) => frame(FRAME.headers, END_STREAM | END_HEADERS, streamId, GET_HEALTH)

  async function flooded(address: string): Promise<RawTwo> {
    const raw = new RawTwo(address)
    open.push({ close: () => raw.socket.destroy() })
    await eventually('the settings', () => raw.count(FRAME.settings) > 0)
    return raw
  }

  it('streams that are opened and reset at once', async () => {
    const platform = await start()
    const raw = await flooded(platform.address)
    const cancel = Buffer.from([0, 0, 0, 8])
    for (let i = 0; i < 20 && !raw.isClosed; i++) {
      const parts = Array.from({ length: 500 }, (_, n) => 1 + 2 * (500 * i + n))
      raw.send(...parts.flatMap((id) => [get(id), frame(FRAME.rstStream, 0, id, cancel)]))
      await new Promise(setImmediate)
    }
    await raw.closed()
    expect(raw.count(FRAME.headers)).toBeLessThan(1_500)
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
  })

  it('headers without an end', async () => {
    const platform = await start()
    const raw = await flooded(platform.address)
    const more = headerBlock({ 'x-more': 'x'.repeat(16_000) })
    raw.send(frame(FRAME.headers, END_STREAM, 1, GET_HEALTH))
    for (let i = 0; i < 500 && !raw.isClosed; i++) {
      raw.send(frame(FRAME.continuation, 0, 1, more))
      await new Promise(setImmediate)
    }
    await raw.closed()
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
  })

  it('pings and settings', async () => {
    const platform = await start()
    for (const one of [frame(FRAME.ping, 0, 0, Buffer.alloc(8)), frame(FRAME.settings, 0, 0)]) {
      const raw = await flooded(platform.address)
      for (let i = 0; i < 100 && !raw.isClosed; i++) {
        raw.send(...Array.from({ length: 100 }, () => one))
        await new Promise(setImmediate)
      }
      await raw.closed()
    }
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
  })

  it('more and longer headers than HTTP/1 takes', async () => {
    const { address } = await start()
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, '1']))
    const refusals = await Promise.allSettled([
      ask(client(address), '/v1/models', undefined, many),
      ask(client(address), '/v1/models', undefined, { 'x-long': 'x'.repeat(40_000) }),
    ])
    expect(refusals.map((one) => (one.status === 'fulfilled' ? one.value.status : 'reset'))).toEqual(['reset', 431])
  })
})
