import OpenAI, { APIError, RateLimitError } from 'openai'
import { afterEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { buildConfig } from '../../src/config/load.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream, hangs } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { RawSocket } from '../support/raw-http.ts'
import { dechunked, framesIn } from '../support/sse-frames.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** What a tenant may use, how it is told, and what waiting looks like from outside. */

const CHAT = '/v1/chat/completions'
const chat = {
  model: MODEL,
  messages: [{ role: 'user' as const, content: 'Hello there. How are you?' }],
  max_tokens: 8,
}

const open: Array<{ close(): Promise<void> }> = []
const sockets: RawSocket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const one of open.splice(0).toReversed()) await one.close()
})

const tenants = (allowance: Tree): Tree[] => [
  { id: 'acme', slo: 'patient', allowance, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
  { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
]

async function start(overrides: Tree = {}, behaviour = answers(), concurrencyMax = 64) {
  const upstream = await FakeUpstream.start(behaviour)
  open.push(upstream)
  const platform = await startPlatform(upstreamTree([upstream.url], overrides, concurrencyMax))
  open.push(platform)
  return { upstream, platform }
}

function connect(platform: TestPlatform): RawSocket {
  const socket = new RawSocket(platform.address)
  sockets.push(socket)
  return socket
}

describe('a rate limit', () => {
  /** One more every ten seconds: longer than any of this takes. */
  const limited = { tenants: tenants({ requests: { perMinute: 6, burst: 2 } }) }

  it('is told in headers, on answers and on refusals, and keeps to one tenant', async () => {
    const { platform } = await start(limited)
    const responses: Response[] = []
    for (let i = 0; i < 3; i++) responses.push(await postJson(platform.address + CHAT, chat))
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
    const header = (name: string) => responses.map(({ headers }) => headers.get(name))
    expect(header('x-ratelimit-limit-requests')).toEqual(['2', '2', '2'])
    expect(header('x-ratelimit-remaining-requests')).toEqual(['1', '0', '0'])
    for (const reset of header('x-ratelimit-reset-requests')) expect(reset).toMatch(/^(\d+m)?[\d.]+(ms|s)$/)
    const refused = responses[2]!
    expect(checked('error', await refused.json())).toMatchObject({
      error: { type: 'rate_limit_error', code: 'rate_limit_requests' },
    })
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(50)
    expect(Number(refused.headers.get('retry-after-ms'))).toBeLessThanOrEqual(11_000)
    expect((await postJson(platform.address + CHAT, chat, authorization(GLOBEX_KEY))).status).toBe(200)
  })

  it('is waited out by the SDK for as long as our headers say', async () => {
    const { platform } = await start({ tenants: tenants({ requests: { perMinute: 300, burst: 2 } }) })
    const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 4 })
    for (let i = 0; i < 4; i++) checked('chat', await client.chat.completions.create(chat))
    platform.journal.drain()
    const outcomes = platform.entries.flatMap((entry) => (entry.kind === 'settled' ? [entry.outcome] : []))
    expect(outcomes.filter((outcome) => outcome === 'completed')).toHaveLength(4)
    // Told the truth once, it comes back once: a second refusal would mean that we had told it too little.
    expect(outcomes.filter((outcome) => outcome === 'rejected').length).toBeLessThanOrEqual(3)
  })

  it('is told as the SDK’s own error when it is not to be waited out', async () => {
    const { platform } = await start(limited)
    const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    await client.chat.completions.create(chat)
    await client.chat.completions.create(chat)
    await expect(client.chat.completions.create({ ...chat, stream: true })).rejects.toBeInstanceOf(RateLimitError)
  })
})

describe('a limit on how many at once', () => {
  it('refuses one more, and takes it when one has ended', async () => {
    const { upstream, platform } = await start({ tenants: tenants({ concurrencyMax: 1 }) }, hangs)
    const first = connect(platform).post(CHAT, chat, authorization())
    await eventually('it runs', () => upstream.openAnswers === 1)
    const refused = await postJson(platform.address + CHAT, chat)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ error: { code: 'concurrency_limit' } })
    first.destroy()
    await eventually('it is free', () => platform.platform.liveCount === 0)
    upstream.behaviour = answers()
    expect((await postJson(platform.address + CHAT, chat)).status).toBe(200)
  })
})

describe('a client that leaves while it waits', () => {
  it('gets its budget back at once, the request itself included', async () => {
    const allowance = { requests: { perMinute: 1, burst: 5 }, tokens: { perMinute: 1, burst: 10_000 } }
    const { upstream, platform } = await start({ tenants: tenants(allowance) }, hangs, 1)
    connect(platform).post(CHAT, chat, authorization())
    await eventually('the first runs', () => upstream.openAnswers === 1)
    const second = connect(platform).post(CHAT, chat, authorization())
    await eventually('the second waits', () => platform.platform.turnstile.view().waiting === 1)
    second.destroy()
    await eventually('it is gone', () => platform.platform.liveCount === 1)
    upstream.behaviour = answers()
    const third = connect(platform).post(CHAT, { ...chat, stream: true }, authorization())
    await eventually('the third waits', () => platform.platform.turnstile.view().waiting === 1)
    sockets[0]!.destroy()
    await third.until('its head', (received) => received.includes('x-ratelimit-remaining-requests'))
    // Five, less the first, which ran, and the third itself.
    expect(third.received).toContain('x-ratelimit-remaining-requests: 3')
  })
})

describe('a stream that waits long', () => {
  const patient = { server: { keepAliveMs: 40 }, queue: { waitMsMax: 300 } }

  it('is kept alive with comments, then gets its answer', async () => {
    const { upstream, platform } = await start({ ...patient, queue: { waitMsMax: 10_000 } }, hangs, 1)
    const first = connect(platform).post(CHAT, chat, authorization())
    await eventually('the first runs', () => upstream.openAnswers === 1)
    upstream.behaviour = answers()
    const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const waiting = client.chat.completions.create({ ...chat, stream: true })
    // The SDK has its response while the request still waits for a turn.
    const stream = await waiting
    expect(platform.platform.turnstile.view().waiting).toBe(1)
    first.destroy()
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    expect(text).toContain('weir')
  })

  it('that waits in vain ends with an error frame, which the SDK throws', async () => {
    // A busy machine sends fewer comments than there is time for: a few of twenty-five are enough.
    const { upstream, platform } = await start({ ...patient, queue: { waitMsMax: 1_000 } }, hangs, 1)
    connect(platform).post(CHAT, chat, authorization())
    await eventually('the first runs', () => upstream.openAnswers === 1)
    const raw = connect(platform).post(CHAT, { ...chat, stream: true }, authorization())
    await raw.until('it is over', (received) => received.includes('[DONE]'))
    const body = dechunked(raw.received)
    expect(body.match(/^: keep-alive\n\n/gm)!.length).toBeGreaterThan(2)
    const frames = framesIn(body.replaceAll(': keep-alive\n\n', ''))
    expect(frames).toMatchObject([{ error: { code: 'waited_too_long', type: 'server_error' } }])

    const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const stream = await client.chat.completions.create({ ...chat, stream: true })
    const read = async () => {
      for await (const _ of stream) expect.unreachable('there is no answer')
    }
    await expect(read()).rejects.toBeInstanceOf(APIError)
  })

  it('unstreamed, it gets a status and a time to come back', async () => {
    const { upstream, platform } = await start(patient, hangs, 1)
    connect(platform).post(CHAT, chat, authorization())
    await eventually('the first runs', () => upstream.openAnswers === 1)
    const refused = await postJson(platform.address + CHAT, chat)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })
})

describe('POST /infer', () => {
  it('answers in numbers', async () => {
    const { platform } = await start()
    const body = { tenant_id: 'acme', tokens_requested: 12, priority_bid: 2 }
    const response = await postJson(`${platform.address}/infer`, body)
    expect(await response.json()).toMatchObject({
      tenant_id: 'acme',
      status: 'completed',
      model: MODEL,
      request_id: response.headers.get('x-request-id'),
    })
  })

  it('asks the model that is named, and no other', async () => {
    const upstream = await FakeUpstream.start(answers())
    open.push(upstream)
    const pools = ['first', MODEL].map((model) => ({
      model,
      backend: { kind: 'http-openai' },
      replicas: [`${upstream.url}?for=${model}`],
    }))
    const { platform } = await start({ models: [{ name: 'first' }, { name: MODEL }], pools })
    const ask = async (model: string | null) => {
      const response = await postJson(`${platform.address}/infer`, { tenant_id: 'acme', tokens_requested: 3, model })
      return { status: response.status, body: (await response.json()) as object }
    }
    expect(await ask(MODEL)).toMatchObject({ status: 200, body: { model: MODEL } })
    const unknown = await ask('nobody-knows')
    expect(unknown).toMatchObject({ status: 404, body: { error: { param: 'model', code: 'model_not_found' } } })
  })

  it.each([
    [{ tenant_id: 'globex', tokens_requested: 1 }, 403, 'tenant_id'],
    [{ tenant_id: 'acme', tokens_requested: 1, model: 7 }, 400, 'model'],
    [{ tenant_id: 'acme', tokens_requested: 1, model: '' }, 400, 'model'],
    [{ tenant_id: 'acme' }, 400, 'tokens_requested'],
    [{ tenant_id: 'acme', tokens_requested: 'many' }, 400, 'tokens_requested'],
    [{ tenant_id: 'acme', tokens_requested: 1, priority_bid: 'high' }, 400, 'priority_bid'],
  ])('%j: %i, %s', async (body, status, param) => {
    const { platform } = await start()
    const response = await postJson(`${platform.address}/infer`, body)
    expect(response.status).toBe(status)
    expect(checked('error', await response.json())).toMatchObject({ error: { param } })
  })
})

describe('a request’s story', () => {
  it('is told to its own tenant, without what was said, and to nobody else', async () => {
    const { platform } = await start()
    const { headers } = await postJson(platform.address + CHAT, chat)
    const id = headers.get('x-request-id')!
    await platform.settled(id)
    const tell = (key: string) => fetch(`${platform.address}/spillway/requests/${id}`, { headers: authorization(key) })
    const told = await tell(ACME_KEY)
    const text = await told.text()
    expect((JSON.parse(text) as { entries: Array<{ kind: string }> }).entries.map((entry) => entry.kind)).toEqual([
      'arrived',
      'admitted',
      'granted',
      'attempt-ended',
      'settled',
    ])
    expect(text).not.toContain('How are you')
    expect((await tell(GLOBEX_KEY)).status).toBe(404)
    expect((await tell('sk-nobody')).status).toBe(401)
  })
})

it('tenants can be put on new terms while the platform runs', async () => {
  const { platform, upstream } = await start()
  const ask = async (key: string) => (await postJson(platform.address + CHAT, chat, authorization(key))).status
  expect(await ask(ACME_KEY)).toBe(200)
  const initech = { id: 'initech', slo: 'patient', keys: [{ id: 'i-1', hash: hashKey('sk-new') }] }
  const tree = upstreamTree([upstream.url], {
    tenants: [{ ...tenants({ requests: { perMinute: 1, burst: 1 } })[0], weight: 5 }, initech],
    store: { path: 'memory:' },
    ledger: { enabled: false },
  })
  const load = () => buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
  const answer = await platform.reload(load, { by: 'test', because: 'other terms' })
  expect(answer).toMatchObject({ kind: 'reloaded', reload: { changed: { tenants: 3, keys: 2 }, needsRestart: [] } })
  expect(await ask('sk-new')).toBe(200)
  expect(await ask(GLOBEX_KEY)).toBe(401)
  expect([await ask(ACME_KEY), await ask(ACME_KEY)]).toContain(429)
})
