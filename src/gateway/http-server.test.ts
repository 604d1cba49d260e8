import { afterEach, describe, expect, it } from 'vitest'
import { checked } from '../../test/support/openai-shapes.ts'
import { RawSocket, sendRaw } from '../../test/support/raw-http.ts'
import type { TokenVerifier } from './authenticate.ts'
import { closeServer, listen } from './http-listen.ts'
import { type HttpServer, makeHttpServer, type Route } from './http-server.ts'

const servers: HttpServer[] = []
afterEach(async () => {
  const now = Promise.resolve()
  for (const server of servers.splice(0)) await closeServer(server, { answersEnded: now, patienceEnded: now })
})

async function start(routes: readonly Route[], faults: string[] = [], tokens?: TokenVerifier): Promise<string> {
  const server = makeHttpServer(routes, {
    basePath: '/base',
    headersTimeoutMs: 5_000,
    requestTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    connectionsMax: 10,
    makeRequestId: () => 'req_7',
    onFault: (where, error) => faults.push(`${where}: ${String(error)}`),
    tokens,
  })
  servers.push(server)
  return listen(server, { host: '127.0.0.1', port: 0 })
}

const get = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, handle })

it('a route that throws, now or later, is a 500 in the usual shape and a counted fault; the next request is served', async () => {
  const faults: string[] = []
  const address = await start(
    [
      get('/now', () => {
        throw new Error('broken now')
      }),
      get('/later', () => Promise.reject(new Error('broken later'))),
      get('/fine', (exchange) => exchange.sendJson(200, '{}')),
    ],
    faults,
  )
  for (const path of ['/base/now', '/base/later']) {
    const { status, text, headers } = await sendRaw(address, { method: 'GET', path })
    expect(status).toBe(500)
    expect(checked('error', JSON.parse(text))).toMatchObject({
      error: { code: 'internal_error', type: 'server_error' },
    })
    expect(text).not.toContain('broken')
    expect(headers).toMatchObject({ 'x-request-id': 'req_7', 'retry-after': '1' })
  }
  expect((await sendRaw(address, { method: 'GET', path: '/base/fine' })).status).toBe(200)
  expect(faults).toEqual(['route /now: Error: broken now', 'route /later: Error: broken later'])
})

it('a route that throws after its answer began is counted, and sends nothing into it', async () => {
  const faults: string[] = []
  const address = await start(
    [
      get('/late', (exchange) => {
        exchange.sendJson(200, '{"whole":true}')
        throw new Error('broken late')
      }),
    ],
    faults,
  )
  expect(await sendRaw(address, { method: 'GET', path: '/base/late' })).toMatchObject({
    status: 200,
    text: '{"whole":true}',
  })
  expect(faults).toHaveLength(1)
})

it('a route below a path gets the rest of it, decoded; an exact one goes first', async () => {
  const address = await start([
    get('/things', (exchange) => exchange.sendJson(200, '"list"')),
    get('/things/*', (exchange, rest) => exchange.sendJson(200, JSON.stringify(rest))),
    get('/things/special', (exchange) => exchange.sendJson(200, '"special"')),
  ])
  const ask = async (path: string) => JSON.parse((await sendRaw(address, { method: 'GET', path })).text) as unknown
  expect(await ask('/base/things')).toBe('list')
  expect(await ask('/base/things/')).toBe('list')
  expect(await ask('/base/things/org%2Fmodel:1')).toBe('org/model:1')
  expect(await ask('/base/things/100%')).toBe('100%')
  expect(await ask('/base/things/special')).toBe('special')
  expect(await ask('/things')).toMatchObject({ error: { code: 'unknown_url' } })
})

it('a path that nobody serves names the nearest one that is, as text for clients of Ollama', async () => {
  const fine: Route['handle'] = (exchange) => exchange.sendJson(200, '{}')
  const address = await start([{ method: 'POST', path: '/v1/chat/completions', handle: fine }, get('/v1/models', fine)])
  const ask = (method: string, path: string) => sendRaw(address, { method, path })
  const missed = await ask('POST', '/base/chat/completions')
  expect(missed.status).toBe(404)
  expect(checked('error', JSON.parse(missed.text))).toMatchObject({
    error: {
      code: 'unknown_url',
      message: expect.stringContaining('Did you mean /base/v1/chat/completions?') as string,
    },
  })
  const absent = await ask('POST', '/base/v1/realtime/sessions')
  expect(absent.text).toContain('This server has no realtime: /openapi.json lists what it has.')
  const ollama = await ask('POST', '/base/api/chat')
  expect(ollama).toMatchObject({ status: 404, headers: { 'content-type': 'text/plain; charset=utf-8' } })
  expect(ollama.text).toMatch(/^Unknown request URL: POST \/base\/api\/chat\. .*POST \/v1\/chat\/completions/)
})

describe('requests that Node would answer by itself', () => {
  async function answerTo(text: string): Promise<{ status: number; code: string | null; headers: string }> {
    const address = await start([get('/fine', (exchange) => exchange.sendJson(200, '{}'))])
    const socket = new RawSocket(address).send(text)
    await socket.until('an answer', (received) => received.includes('\r\n\r\n') && received.endsWith('}'))
    const [headers = '', body = ''] = socket.received.split('\r\n\r\n')
    socket.destroy()
    const status = Number(headers.split(' ')[1])
    if (status === 200) return { status, code: null, headers }
    return { status, code: checked('error', JSON.parse(body) as { error: { code: string } }).error.code, headers }
  }

  it.each([
    ['no Host', 'GET /base/fine HTTP/1.1\r\n\r\n', 400, 'invalid_http'],
    ['no Host before HTTP/1.1', 'GET /base/fine HTTP/1.0\r\n\r\n', 200, null],
    [
      'an unknown expectation',
      'GET /base/fine HTTP/1.1\r\nhost: x\r\nexpect: tea\r\n\r\n',
      417,
      'unsupported_expectation',
    ],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n', 405, 'method_not_allowed'],
    ['CONNECT without Host', 'CONNECT example.com:443 HTTP/1.1\r\n\r\n', 405, 'method_not_allowed'],
    ['a whole address', 'GET http://x/base/fine HTTP/1.1\r\nhost: x\r\n\r\n', 200, null],
    ['a whole address with a query', 'GET HTTP://x:80/base/fine?a=b HTTP/1.1\r\nhost: x\r\n\r\n', 200, null],
    ['a whole address of nothing', 'GET http://x HTTP/1.1\r\nhost: x\r\n\r\n', 404, 'unknown_url'],
    ['another scheme', 'GET ftp://x/base/fine HTTP/1.1\r\nhost: x\r\n\r\n', 404, 'unknown_url'],
    ['all of the server', 'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n', 404, 'unknown_url'],
    ['an upgrade', 'GET /base/fine HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n', 200, null],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_http'],
    [
      'two lengths',
      'POST /base/fine HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      400,
      'invalid_http',
    ],
    ['U+0000 in the address', 'GET /base/fine?a=%00 HTTP/1.1\r\nhost: x\r\n\r\n', 400, 'invalid_value'],
  ])('%s', async (_what, text, status, code) => {
    expect(await answerTo(text)).toMatchObject({ status, code })
  })

  it('CONNECT is told which methods there are', async () => {
    expect((await answerTo('CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n')).headers).toContain(
      'allow: GET, POST, PATCH, DELETE',
    )
  })
})

describe('a token', () => {
  const headers = { authorization: 'Bearer a.b.c' }
  const proof = { kind: 'refused', because: 'no' } as const
  const told = (path: string, more: Partial<Route> = {}): Route => ({
    ...get(path, (exchange) => exchange.sendJson(200, JSON.stringify(exchange.proof ?? 'none'))),
    ...more,
  })

  it.each([
    ['at once', () => proof, '{"kind":"refused","because":"no"}'],
    ['later', () => Promise.resolve(proof), '{"kind":"refused","because":"no"}'],
    ['to be none', () => undefined, '"none"'],
  ])('is checked before its route is called: found %s', async (_, verify, text) => {
    const address = await start([told('/x')], [], { verify })
    expect(await sendRaw(address, { method: 'GET', path: '/base/x', headers })).toMatchObject({ status: 200, text })
    const withKey = { authorization: 'Bearer sk-a' }
    const answer = await sendRaw(address, { method: 'GET', path: '/base/x', headers: withKey })
    expect(answer).toMatchObject({ status: 200, text: '"none"' })
  })

  it('is not looked at for health checks, which may not wait for an issuer', async () => {
    const address = await start([told('/health', { isUnmetered: true })], [], { verify: () => new Promise(() => {}) })
    expect((await sendRaw(address, { method: 'GET', path: '/base/health', headers })).text).toBe('"none"')
  })

  it.each([
    [
      'now',
      () => {
        throw new Error('broken')
      },
    ],
    ['later', () => Promise.reject(new Error('broken'))],
  ])('whose check throws, %s, is a 500 and a counted fault', async (_, verify) => {
    const faults: string[] = []
    const address = await start([told('/x')], faults, { verify })
    expect((await sendRaw(address, { method: 'GET', path: '/base/x', headers })).status).toBe(500)
    expect(faults).toEqual(['route /x: Error: broken'])
  })

  it('that proves right after its client has gone is not served', async () => {
    let prove: (found: typeof proof) => void = () => {}
    let servedCount = 0
    const asked = Promise.withResolvers<void>()
    const verify = () => {
      asked.resolve()
      return new Promise<typeof proof>((resolve) => {
        prove = resolve
      })
    }
    const gone = Promise.withResolvers<void>()
    const address = await start([get('/x', () => void servedCount++)], [], { verify })
    servers[0]?.on('request', (_, res) => res.on('close', () => gone.resolve()))
    const socket = new RawSocket(address)
    socket.send('GET /base/x HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\n\r\n')
    await asked.promise
    socket.destroy()
    await gone.promise
    prove(proof)
    await Promise.resolve()
    await sendRaw(address, { method: 'GET', path: '/base/nothing' })
    expect(servedCount).toBe(0)
  })
})
