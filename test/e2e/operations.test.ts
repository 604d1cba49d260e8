import { afterEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, hangs } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { parseExposition } from '../support/parse-exposition.ts'
import { RawSocket, sendRaw } from '../support/raw-http.ts'
import { freePort } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  METRICS_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

/** What operators rely on: limits, listeners, paths, health, metrics, the description of the API. */

const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello there. How are you?' }], max_tokens: 2 }
const CHAT = '/v1/chat/completions'

const open: Array<{ close(): Promise<void> }> = []
const sockets: RawSocket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(overrides: Tree = {}): Promise<TestPlatform> {
  const platform = await startPlatform(testTree(overrides))
  open.push(platform)
  return platform
}

function connect(address: string): RawSocket {
  const socket = new RawSocket(address)
  sockets.push(socket)
  return socket
}

describe('slow clients', () => {
  const slowClients = (address: string): RawSocket[] =>
    Array.from({ length: 100 }, () => connect(address).send('GET /health HTTP/1.1\r\nhost: x\r\nx-'))

  it('a hundred that are slow with their headers keep nobody else from an answer', async () => {
    const platform = await start({
      server: { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, connectionsMax: 200 },
    })
    const slow = slowClients(platform.address)
    await eventually('they are connected', () => slow.every((client) => !client.socket.connecting))
    for (let i = 0; i < 10; i++) expect((await fetch(`${platform.address}/health`)).status).toBe(200)
    expect(slow.filter((client) => client.isClosed)).toEqual([])
  })

  it('whoever is too slow with its headers is closed', async () => {
    const platform = await start({ server: { headersTimeoutMs: 400, connectionsMax: 200 } })
    const slow = slowClients(platform.address)
    // One byte now and then does not help.
    const dripping = setInterval(() => {
      for (const client of slow) if (!client.isClosed) client.send('a')
    }, 50)
    await eventually('all are closed', () => slow.every((client) => client.isClosed))
    clearInterval(dripping)
    for (const client of slow) expect(client.received).toMatch(/^(HTTP\/1.1 400 .*request_too_slow.*)?$/s)
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
  })

  it('whoever is too slow with its body is closed, and told so in a way that no SDK retries', async () => {
    const platform = await start({ server: { headersTimeoutMs: 300, requestTimeoutMs: 400 } })
    const slow = connect(platform.address).send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${ACME_KEY}\r\ncontent-length: 1000\r\n\r\n{"model":`,
    )
    await slow.closed()
    expect(slow.received).toMatch(/^HTTP\/1.1 400 /)
    expect(slow.received).toMatch(/x-should-retry: false/)
    expect(platform.platform.liveCount).toBe(0)
  })

  it('an answer may take longer than a request: no limit of these cuts it', async () => {
    // Long enough for a request on a busy machine, and half as long as the answer.
    const platform = await start({ server: { headersTimeoutMs: 600, requestTimeoutMs: 700, idleTimeoutMs: 600 } })
    const body = { ...chat, seed: 11, max_tokens: 220, ignore_eos: true, stream: true }
    const response = await postJson(platform.address + CHAT, body)
    expect(await response.text()).toMatch(/\[DONE\]\s*$/)
  })

  it('a kept-alive connection is closed when it has been idle for long enough', async () => {
    const platform = await start({ server: { idleTimeoutMs: 200 } })
    const client = connect(platform.address).send('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')
    await client.until('its answer', (received) => received.includes('"ok"'))
    await client.closed()
    expect(client.received.match(/HTTP\/1.1/g)).toHaveLength(1)
  })

  it('more connections than allowed are turned away, the others go on', async () => {
    const platform = await start({ server: { connectionsMax: 3 } })
    const first = Array.from({ length: 3 }, () => connect(platform.address))
    await eventually('they are connected', () => first.every((client) => !client.socket.connecting))
    first[0]!.send('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')
    await first[0]!.until('its answer', (received) => received.includes('"ok"'))
    const fourth = connect(platform.address)
    await fourth.closed()
    first[1]!.send('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')
    await first[1]!.until('its answer', (received) => received.includes('"ok"'))
    expect(fourth.received).toBe('')
  })
})

describe('paths and names', () => {
  it('a base path is in front of every route, and nothing is beside it', async () => {
    const platform = await start({ server: { basePath: '/llm/eu' } })
    expect(platform.printed).toContain('/llm/eu')
    expect((await postJson(`${platform.address}/llm/eu${CHAT}`, chat)).status).toBe(200)
    const paths = ['/health', '/health/ready', '/metrics', '/openapi.json', '/v1/models', `/v1/models/${MODEL}`]
    const statuses = (prefix: string) =>
      Promise.all(
        paths.map(async (path) => {
          const headers = authorization(path === '/metrics' ? METRICS_KEY : ACME_KEY)
          return (await fetch(platform.address + prefix + path, { headers })).status
        }),
      )
    expect(await statuses('/llm/eu')).toEqual(paths.map(() => 200))
    expect(await statuses('')).toEqual(paths.map(() => 404))
    const document = (await (await fetch(`${platform.address}/llm/eu/openapi.json`)).json()) as OpenApi
    expect(document.servers).toEqual([{ url: '/llm/eu' }])
  })

  it('aliases are asked for, answered and listed under their own names, and metered under the model’s', async () => {
    const platform = await start()
    const response = await postJson(platform.address + CHAT, { ...chat, model: 'gpt-4o-mini' })
    expect(await response.json()).toMatchObject({ model: 'gpt-4o-mini' })
    expect(response.headers.get('x-spillway-model')).toBe(MODEL)
    expect(await platform.settled(response.headers.get('x-request-id')!)).toMatchObject({ model: MODEL })
  })

  it('queries, trailing slashes and HEAD are understood', async () => {
    const { address } = await start()
    expect((await fetch(`${address}/v1/models/?limit=1`, { headers: authorization() })).status).toBe(200)
    const head = await sendRaw(address, { method: 'HEAD', path: '/health' })
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe('15')
  })
})

describe('health', () => {
  it('is ready only while a replica is, and alive all the time', async () => {
    const upstream = await FakeUpstream.start()
    open.push(upstream)
    upstream.isHealthy = false
    const platform = await startPlatform(upstreamTree([upstream.url]))
    open.push(platform)
    const ready = async () => (await fetch(`${platform.address}/health/ready`)).status
    expect(await ready()).toBe(503)
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
    upstream.isHealthy = true
    await eventually('it is ready', async () => (await ready()) === 200)
    await upstream.close()
    await eventually('it is not ready', async () => (await ready()) === 503)
  })

  it('answers at once when everything is busy', async () => {
    const upstream = await FakeUpstream.start(hangs)
    open.push(upstream)
    const platform = await startPlatform(upstreamTree([upstream.url], { queue: { requestsMax: 5 } }, 1))
    open.push(platform)
    for (let i = 0; i < 6; i++) connect(platform.address).post(CHAT, chat, authorization())
    await eventually('it is full', () => platform.platform.turnstile.view().waiting === 5)
    expect((await fetch(`${platform.address}/health/ready`)).status).toBe(200)
    const refused = await postJson(platform.address + CHAT, chat)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(0)
  })
})

describe('metrics', () => {
  it('are valid, and count what happened', async () => {
    const platform = await start()
    await postJson(platform.address + CHAT, chat)
    platform.journal.drain()
    const response = await fetch(`${platform.address}/metrics`, { headers: authorization(METRICS_KEY) })
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const families = parseExposition(await response.text())
    const filled = [...families.values()].filter(({ samples }) => samples.length > 0).map(({ name }) => name)
    expect(filled).toEqual(
      expect.arrayContaining([
        'spillway_requests_total',
        'spillway_requests_in_flight',
        'spillway_tokens_total',
        'spillway_request_duration_seconds',
        'spillway_time_to_first_token_seconds',
        'spillway_inter_token_seconds',
        'spillway_prefill_seconds',
        'spillway_decode_seconds',
        'spillway_replica_ready',
      ]),
    )
    expect(await platform.metric('spillway_requests_in_flight')).toBe(0)
  })

  it('name tenants, so only keys of their own read them', async () => {
    const { address } = await start({ admin: { keys: [{ id: 'ada', hash: hashKey('sk-ada') }] } })
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${address}/metrics`, { headers })
      return [response.status, response.status === 200 ? 'text' : await codeOf(response)]
    }
    expect(await ask({})).toEqual([401, 'invalid_api_key'])
    expect(await ask(authorization('sk-nobody'))).toEqual([401, 'invalid_api_key'])
    expect(await ask(authorization(ACME_KEY))).toEqual([403, 'not_admin'])
    expect(await ask(authorization('sk-ada'))).toEqual([200, 'text'])
    expect(await ask(authorization(METRICS_KEY))).toEqual([200, 'text'])
    const models = await fetch(`${address}/admin/v1/models`, { headers: authorization(METRICS_KEY) })
    expect([models.status, await codeOf(models)]).toEqual([401, 'invalid_api_key'])
  })

  it('can have a listener of their own', async () => {
    const port = await freePort()
    const platform = await start({ server: { metricsPort: port, basePath: '/llm' } })
    const apart = await fetch(`http://127.0.0.1:${port}/metrics`)
    expect(parseExposition(await apart.text()).size).toBeGreaterThan(5)
    expect((await fetch(`${platform.address}/llm/metrics`)).status).toBe(404)
    expect((await fetch(`http://127.0.0.1:${port}/v1/models`, { headers: authorization() })).status).toBe(404)
  })

  // Elsewhere loopback has one address only.
  it.runIf(process.platform === 'linux')('each listener is at its own address and at no other', async () => {
    const port = await freePort()
    await start({ server: { host: '127.0.0.3', metricsPort: port, metricsHost: '127.0.0.2' } })
    expect((await fetch(`http://127.0.0.2:${port}/metrics`)).status).toBe(200)
    for (const host of ['127.0.0.1', '127.0.0.3']) {
      await expect(fetch(`http://${host}:${port}/metrics`)).rejects.toThrow('fetch failed')
    }
  })
})

async function codeOf(response: Response): Promise<string | null> {
  return checked('error', (await response.json()) as { error: { code: string | null } }).error.code
}

interface OpenApi {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly object[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: Record<string, Record<string, unknown>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string; readonly required?: boolean }>
  readonly responses: Record<string, { readonly description: string }>
}

describe('/openapi.json', () => {
  it('is a whole OpenAPI 3.1 document: references resolve, path parameters are declared, ids are unique', async () => {
    const { address } = await start()
    const document = (await (await fetch(`${address}/openapi.json`)).json()) as OpenApi
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(document.info).toMatchObject({ title: 'Spillway', version: /^\d+\.\d+\.\d+/ })
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
    )
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, method, operation } of operations) {
      expect(['get', 'post', 'patch', 'delete']).toContain(method)
      for (const response of Object.values(operation.responses)) expect(response.description).not.toBe('')
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = (operation.parameters ?? []).filter((one) => one.in === 'path' && one.required === true)
      expect(declared.map((one) => one.name)).toEqual(inPath)
    }
    const pointers = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, pointer]) => pointer!)
    const follow = (pointer: string): unknown =>
      pointer.split('/').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], document)
    expect(pointers.filter((pointer) => follow(pointer) === undefined)).toEqual([])
  })

  it('describes what is there: every path answers, and none is forgotten', async () => {
    const { address } = await start()
    const document = (await (await fetch(`${address}/openapi.json`)).json()) as OpenApi
    const answered: string[] = []
    const unknown: string[] = []
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of Object.keys(item)) {
        const { status, text } = await sendRaw(address, {
          method: method.toUpperCase(),
          path: path.replace('{model}', MODEL),
          headers: { ...authorization(), 'content-type': 'application/json' },
          ...(method === 'post' ? { body: '{}' } : {}),
        })
        answered.push(`${method} ${path} ${status}`)
        if (text.includes('unknown_url')) unknown.push(`${method} ${path}`)
      }
    }
    expect(answered).toEqual(
      expect.arrayContaining([
        'post /v1/chat/completions 400',
        'post /v1/completions 400',
        'post /infer 400',
        'get /v1/models 200',
      ]),
    )
    // A tenant's key opens neither the admin API nor the metrics nor the signals for autoscalers, and one that does not manage nothing of its org.
    const isAdmin = (line: string): boolean => / \/(admin\/|metrics |autoscale|v1\/spillway\/(?!me |usage ))/.test(line)
    // Nothing is called `{id}`; where an empty body is wrong, that is said first. A file is not uploaded as JSON.
    const expected = (line: string): RegExp => {
      if (isAdmin(line)) return / 403$/
      // There is no ledger here, which is said with 404.
      if (line.includes(' /v1/spillway/usage ')) return / 404$/
      if (line.startsWith('post /v1/files ')) return / 415$/
      if (!line.includes('{id}')) return / (200|400)$/
      return line.startsWith('post ') ? / (400|404)$/ : / 404$/
    }
    expect(answered.filter((line) => !expected(line).test(line))).toEqual([])
    expect(unknown).toEqual([])
    for (const path of ['/v1/files', '/v1/vector_stores', '/v1/vector_stores/{id}/search'])
      expect(Object.keys(document.paths)).toContain(path)
    expect(answered.filter(isAdmin).length).toBeGreaterThan(10)
  })
})
