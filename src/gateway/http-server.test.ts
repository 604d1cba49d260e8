import { afterEach, expect, it } from 'vitest'
import { checked } from '../../test/support/openai-shapes.ts'
import { sendRaw } from '../../test/support/raw-http.ts'
import { closeServer, listen } from './http-listen.ts'
import { type HttpServer, makeHttpServer, type Route } from './http-server.ts'

const servers: HttpServer[] = []
afterEach(async () => {
  const now = Promise.resolve()
  for (const server of servers.splice(0)) await closeServer(server, { answersEnded: now, patienceEnded: now })
})

async function start(routes: readonly Route[], faults: string[] = []): Promise<string> {
  const server = makeHttpServer(routes, {
    basePath: '/base',
    headersTimeoutMs: 5_000,
    requestTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    connectionsMax: 10,
    makeRequestId: () => 'req_7',
    onFault: (where, error) => faults.push(`${where}: ${String(error)}`),
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
