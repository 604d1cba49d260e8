import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream, fails } from '../support/fake-upstream.ts'
import {
  ACME_KEY,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** `/v1/embeddings` as OpenAI's own client uses it, through admission, fairness and budgets. */

const EMBED = 'embed'
const upstreamTree = (url: string) => ({
  models: [{ name: MODEL }, { name: EMBED, kind: 'embedding' }],
  pools: [
    { model: MODEL, backend: { kind: 'simulated' } },
    { model: EMBED, backend: { kind: 'http-openai', upstreamModel: 'theirs' }, replicas: [url] },
  ],
})

let platform: TestPlatform
let client: OpenAI

beforeAll(async () => {
  const tree = testTree({
    models: [
      { name: MODEL },
      { name: EMBED, kind: 'embedding', aliases: ['text-embedding-3-small'], contextTokensMax: 512 },
    ],
    pools: [
      { model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
      { model: EMBED, backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
    ],
  })
  const [acme, globex] = tree['tenants'] as Array<Record<string, unknown>>
  globex!['allowance'] = { tokens: { perMinute: 60, burst: 60 } }
  platform = await startPlatform({ ...tree, tenants: [acme, globex] })
  client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

const post = (body: object, headers = {}) => postJson(`${platform.baseURL}/embeddings`, body, headers)
const cosine = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, part, i) => sum + part * b[i]!, 0)

describe('OpenAI’s client', () => {
  it('gets vectors in which similar texts are similar', async () => {
    const input = ['A weir holds the water.', 'Weirs hold back water.', 'Invoices are due in March.']
    // Without a format it asks for base64, and turns that into numbers itself.
    const answer = await client.embeddings.create({ model: 'text-embedding-3-small', input })
    expect(answer).toMatchObject({ object: 'list', model: 'text-embedding-3-small' })
    expect(answer.data.map(({ index, object }) => [index, object])).toEqual([0, 1, 2].map((i) => [i, 'embedding']))
    const [one, two, three] = answer.data.map(({ embedding }) => embedding)
    expect(one).toHaveLength(768)
    expect(cosine(one!, one!)).toBeCloseTo(1, 5)
    expect(cosine(one!, two!)).toBeGreaterThan(cosine(one!, three!) + 0.2)
    expect(answer.usage.prompt_tokens).toBe(answer.usage.total_tokens)
    expect(answer.usage.prompt_tokens).toBeGreaterThan(12)
  })

  it('gets the same numbers in both encodings, and from tokens what it gets from their text', async () => {
    const ask = (more: object) => client.embeddings.create({ model: EMBED, input: 'hello world', ...more })
    const float = (await ask({ encoding_format: 'float' })).data[0]!.embedding
    const base64 = await (await post({ model: EMBED, input: 'hello world', encoding_format: 'base64' })).json()
    const text = (base64 as { data: Array<{ embedding: string }> }).data[0]!.embedding
    const bytes = Buffer.from(text, 'base64')
    expect(Array.from({ length: 768 }, (_, i) => bytes.readFloatLE(i * 4))).toEqual(float)
    expect((await ask({})).data[0]!.embedding).toEqual(float)
    // "hello world" in o200k_base.
    const tokens = [24_912, 2_375]
    expect((await ask({ input: tokens, encoding_format: 'float' })).data[0]!.embedding).toEqual(float)
    expect((await ask({ input: [tokens, [24_912]] })).data).toHaveLength(2)
    expect((await ask({ input: tokens })).usage).toEqual({ prompt_tokens: 2, total_tokens: 2 })
  })

  it('gets shorter vectors of length 1 when it asks for fewer dimensions', async () => {
    const { data } = await client.embeddings.create({ model: EMBED, input: 'hello world', dimensions: 64 })
    expect(data[0]!.embedding).toHaveLength(64)
    expect(cosine(data[0]!.embedding, data[0]!.embedding)).toBeCloseTo(1, 5)
  })
})

describe('what is wrong is named', () => {
  it.each([
    [{ input: '' }, 400, 'input'],
    [{ input: ['a', ''] }, 400, 'input[1]'],
    [{ input: 'a', encoding_format: 'hex' }, 400, 'encoding_format'],
    [{ input: 'a', dimensions: 4_000 }, 400, 'dimensions'],
    [{ input: 'a', dimensions: 1.5 }, 400, 'dimensions'],
    [{ input: [999_999_999] }, 400, 'input[0]'],
    [{ input: 'long '.repeat(2_000) }, 400, 'input'],
    [{ input: ['short', 'long '.repeat(2_000)] }, 400, 'input'],
    [{ input: 'a', model: 'nobody' }, 404, 'model'],
    [{ input: 'a', model: MODEL }, 400, 'model'],
    [{}, 400, 'input'],
  ])('%#', async (body, status, param) => {
    const response = await post({ model: EMBED, ...body })
    expect({ status: response.status, ...((await response.json()) as object) }).toMatchObject({
      status,
      error: { param },
    })
  })

  it('and a chat with an embedding model says where to go', async () => {
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      model: EMBED,
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'model', message: /\/v1\/embeddings/ } })
  })

  it('and a prompt that is too long is named by its own parameter', async () => {
    const prompt = 'long '.repeat(60_000)
    const completion = await postJson(`${platform.baseURL}/completions`, { model: MODEL, prompt })
    expect(await completion.json()).toMatchObject({ error: { param: 'prompt', code: 'context_length_exceeded' } })
    const messages = [{ role: 'user', content: prompt }]
    const chat = await postJson(`${platform.baseURL}/chat/completions`, { model: MODEL, messages })
    expect(await chat.json()).toMatchObject({ error: { param: 'messages', code: 'context_length_exceeded' } })
  })

  it('and no key is no key', async () => {
    expect((await post({ model: EMBED, input: 'a' }, { authorization: 'Bearer nobody' })).status).toBe(401)
  })
})

describe('the platform', () => {
  it('admits, counts and settles it like any other request', async () => {
    const response = await post({ model: EMBED, input: ['a weir', 'a dam'] })
    expect(response.headers.get('x-spillway-model')).toBe(EMBED)
    const settled = await platform.settled(response.headers.get('x-request-id')!)
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
    expect(settled).toMatchObject({
      outcome: 'completed',
      model: EMBED,
      usage: { promptTokens: usage.prompt_tokens, outputTokens: 0 },
    })
    expect(settled.firstTokenAt).toBeDefined()
  })

  it('charges the budget, and refuses who is over it', async () => {
    const authorization = { authorization: `Bearer ${GLOBEX_KEY}` }
    const input = 'a weir holds water and spills the rest of it '.repeat(4)
    const first = await post({ model: EMBED, input }, authorization)
    expect(first.status).toBe(200)
    expect(Number(first.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(30)
    const second = await post({ model: EMBED, input }, authorization)
    expect(second.status).toBe(429)
    expect(await second.json()).toMatchObject({ error: { code: 'rate_limit_tokens' } })
  })

  const openCount = async (): Promise<number> => {
    const replica = platform.platform.pools.find(({ model }) => model === EMBED)!.replicas[0]!
    const { runningCount = 0, waitingCount = 0 } = await platform.platform.world.backends.of(replica).probe(replica)
    return runningCount + waitingCount
  }

  it('answers many at once, and holds nothing afterwards', async () => {
    const many = Array.from({ length: 40 }, (_, i) => post({ model: EMBED, input: `text number ${i}` }))
    expect((await Promise.all(many)).every(({ status }) => status === 200)).toBe(true)
    expect(await openCount()).toBe(0)
  })

  it('frees the engine when the client leaves', async () => {
    const abort = new AbortController()
    const input = Array.from({ length: 500 }, (_, i) => `text ${i} ${'word '.repeat(200)}`)
    const left = fetch(`${platform.baseURL}/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ACME_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: EMBED, input }),
      signal: abort.signal,
    })
    await eventually('the engine works', async () => (await openCount()) > 0)
    abort.abort()
    await expect(left).rejects.toThrow('aborted')
    await eventually('the engine is free', async () => (await openCount()) === 0)
  })
})

describe('an engine of somebody else', () => {
  const vectors = (rows: object[]) => fails(200, { object: 'list', data: rows, usage: { prompt_tokens: 4 } })

  it('is passed on as it wrote its vectors, where they are as the client wants them', async () => {
    const rows = '[{"object":"embedding","index":0,"embedding":[0.10,-1.5e-3,1.0],"score":1.50}]'
    const document = `{"object":"list","data":${rows},"model":"theirs-2024","usage":{"prompt_tokens":4,"total_tokens":4,"x":1.0},"y":2.0}`
    const upstream = await FakeUpstream.start(fails(200, document))
    const other = await startPlatform(testTree(upstreamTree(upstream.url)))
    const answer = await postJson(`${other.baseURL}/embeddings`, { input: 'a', encoding_format: 'float' })
    expect(await answer.text()).toBe(document.replace('"theirs-2024"', `"${EMBED}"`))
    await other.close()
    await upstream.close()
  })

  it('is asked in its words, and its vectors are written as the client wants them', async () => {
    const upstream = await FakeUpstream.start(
      vectors([
        { index: 1, embedding: [0, 1] },
        { index: 0, embedding: [1, 0] },
      ]),
    )
    const other = await startPlatform(testTree(upstreamTree(upstream.url)))
    const theirs = new OpenAI({ baseURL: other.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const answer = await theirs.embeddings.create({ model: EMBED, input: ['a', 'b'], dimensions: 2 })
    expect(answer.data.map(({ embedding }) => embedding)).toEqual([
      [1, 0],
      [0, 1],
    ])
    expect(answer.usage).toEqual({ prompt_tokens: 4, total_tokens: 4 })
    expect(upstream.seen.at(-1)).toMatchObject({
      path: '/v1/embeddings',
      body: { model: 'theirs', input: ['a', 'b'], dimensions: 2, encoding_format: 'base64' },
    })
    await other.close()
    await upstream.close()
  })

  it.each([
    ['too few vectors', vectors([{ index: 0, embedding: [1] }])],
    ['a chat', answers()],
    ['nothing', fails(200, {})],
    ['an error', fails(500, {})],
  ])('that answers with %s is tried once more, and then told', async (_what, behaviour) => {
    const upstream = await FakeUpstream.start(behaviour)
    const other = await startPlatform(testTree(upstreamTree(upstream.url)))
    const response = await postJson(`${other.baseURL}/embeddings`, { model: EMBED, input: ['a', 'b'] })
    expect(response.status).toBe(502)
    expect(upstream.seen.filter(({ path }) => path === '/v1/embeddings')).toHaveLength(2)
    await other.close()
    await upstream.close()
  })
})
