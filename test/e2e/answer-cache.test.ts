import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { InsideEngine } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import { startEmbedder } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** Whole answers, given again over HTTP: to whom, when not, and what the client is told. Letters stand for meaning. */
const PLAIN_KEY = 'sk-test-plain'

let platform: TestPlatform
let engine: InsideEngine
let embedder: Awaited<ReturnType<typeof startEmbedder>>

beforeAll(async () => {
  embedder = await startEmbedder()
  const retrieval = {
    budgetMs: 60_000,
    embedder: { url: embedder.url, model: 'letters', dimensions: 26 },
  }
  const answerCache = { similarityMin: 0.97, checkRatio: 0 }
  const tenants = [
    { id: 'acme', slo: 'patient', answerCache, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
    { id: 'globex', slo: 'patient', answerCache, keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
    { id: 'plain', slo: 'patient', keys: [{ id: 'plain-1', hash: hashKey(PLAIN_KEY) }] },
  ]
  // Only answers that end by themselves are kept, and those take seconds on a GPU: this engine is fifty times as fast.
  engine = await InsideEngine.start('--profile', 'h100-llama-8b', '--model', MODEL, '--slowdown', '0.02')
  platform = await startPlatform(upstreamTree([`${engine.url}/v1`], { retrieval, tenants }))
  // The first question opens the database, which is not what a test here is about.
  expect((await call(ACME_KEY, 'GET', '/vector_stores')).status).toBe(200)
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await engine?.stop()
  await embedder?.close()
})

async function call(key: string, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(platform.baseURL + path, {
    method,
    headers: { 'content-type': 'application/json', ...authorization(key) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

interface Answered {
  readonly status: number
  readonly cache: string | null
  readonly content: string
  readonly json: Record<string, never>
}

async function chat(key: string, question: string, more: Record<string, unknown> = {}): Promise<Answered> {
  const response = await call(key, 'POST', '/chat/completions', {
    model: MODEL,
    temperature: 0,
    messages: [
      { role: 'system', content: 'You are a helpful librarian.' },
      { role: 'user', content: question },
    ],
    max_tokens: 1_000,
    ...more,
  })
  const json = (await response.json()) as Record<string, never>
  const [choice] = (json['choices'] ?? []) as Array<{ message: { content: string } }>
  return {
    status: response.status,
    cache: response.headers.get('x-spillway-cache'),
    content: choice?.message.content ?? '',
    json,
  }
}

/** Asked until the answer lies in the cache: keeping it is nobody's wait. */
async function askTwice(key: string, question: string, more?: Record<string, unknown>): Promise<[Answered, Answered]> {
  const first = await chat(key, question, more)
  const again = await eventually('it is known', async () => {
    const answered = await chat(key, question, more)
    return answered.cache === 'hit' ? answered : undefined
  })
  return [first, again]
}

it('a known answer comes again, says so, and costs nothing', async () => {
  const [first, again] = await askTwice(ACME_KEY, 'Which shelf holds the atlas of rivers?')
  expect(first.cache).toBeNull()
  expect(again.content).toBe(first.content)
  expect(again.json).toMatchObject({
    object: 'chat.completion',
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    spillway: { cache: { hit: true, similarity: 1, saved: { completion_tokens: expect.any(Number) } } },
  })
  const [, other] = await askTwice(ACME_KEY, 'Rivers: which shelf holds the atlas of them?')
  expect(other.content).toBe(first.content)
  expect(await platform.metric('spillway_answer_lookups_total', { outcome: 'hit' })).toBeGreaterThanOrEqual(2)
  expect(await platform.metric('spillway_answer_saved_tokens_total', { kind: 'output' })).toBeGreaterThan(0)
})

it('a stream gets it as a stream', async () => {
  const question = 'Where do the maps of the stars lie?'
  const [, again] = await askTwice(ACME_KEY, question)
  const response = await call(ACME_KEY, 'POST', '/chat/completions', {
    model: MODEL,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'You are a helpful librarian.' },
      { role: 'user', content: question },
    ],
    max_tokens: 1_000,
  })
  expect(response.headers.get('x-spillway-cache')).toBe('hit')
  const frames = (await response.text()).split('\n\n').filter(Boolean)
  expect(frames.at(-1)).toBe('data: [DONE]')
  const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice(6)))
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(again.content)
  expect(chunks.at(-2).choices[0].finish_reason).toBe('stop')
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 0 } })
})

it('nothing of it reaches another tenant, another prompt, or who does not want it', async () => {
  const secret = 'The vault of the library opens with 4711 turtles, how many turtles is that?'
  await askTwice(ACME_KEY, secret)
  for (const key of [GLOBEX_KEY, PLAIN_KEY]) expect((await chat(key, secret)).cache).toBeNull()
  const changed: Record<string, unknown>[] = [
    { messages: [{ role: 'user', content: secret }] },
    { temperature: 0.2 },
    { max_tokens: 1_001 },
    { temperature: 1 },
    { n: 2 },
    { tools: [{ type: 'function', function: { name: 'open' } }] },
    { spillway: { cache: false } },
    { seed: 4 },
  ]
  for (const more of changed) {
    const { cache, status } = await chat(ACME_KEY, secret, more)
    expect({ cache, status, more }).toEqual({ cache: null, status: 200, more })
  }
  expect((await chat(ACME_KEY, secret.replace('4711', '4712'))).cache).toBeNull()
  expect((await chat(ACME_KEY, secret.replace('opens', 'never opens'))).cache).toBeNull()
})

it('is forgotten when its corpus changes, and with all that its tenant has', async () => {
  const question = 'At how many bar does the pump run?'
  const more = { spillway: { retrieval: { corpus: 'pumps', top_k: 2 } } }
  const indexed = () =>
    eventually('indexed', async () => {
      const corpus = (await (await call(ACME_KEY, 'GET', '/vector_stores/pumps')).json()) as { status: string }
      return corpus.status === 'completed' || undefined
    })
  await call(ACME_KEY, 'POST', '/vector_stores', { name: 'pumps' })
  await call(ACME_KEY, 'POST', '/vector_stores/pumps/documents', {
    documents: [{ name: 'a', text: 'The pump runs at 30 bar.' }],
  })
  await indexed()
  expect((await askTwice(ACME_KEY, question, more))[1].content).toContain('30 bar')
  await call(ACME_KEY, 'POST', '/vector_stores/pumps/documents', {
    documents: [{ name: 'b', text: 'The pump now runs at 50 bar.' }],
  })
  await indexed()
  expect((await chat(ACME_KEY, question, more)).cache).toBeNull()

  const plain = 'Which shelf holds the atlas of lakes?'
  await askTwice(ACME_KEY, plain)
  await askTwice(GLOBEX_KEY, plain)
  expect((await call(ACME_KEY, 'DELETE', '/vector_stores')).status).toBe(400)
  expect((await call(ACME_KEY, 'DELETE', '/vector_stores?everything_of=globex')).status).toBe(400)
  expect((await call(ACME_KEY, 'DELETE', '/vector_stores?everything_of=acme')).status).toBe(200)
  expect((await chat(ACME_KEY, plain)).cache).toBeNull()
  expect((await chat(GLOBEX_KEY, plain)).cache).toBe('hit')
  expect((await call(ACME_KEY, 'GET', '/vector_stores/pumps')).status).toBe(404)
})

it('a corpus that nobody has is a 404 in OpenAI\u2019s shape, and costs nothing', async () => {
  const { status, json } = await chat(ACME_KEY, 'What?', { spillway: { retrieval: { corpus: 'no-such' } } })
  expect(status).toBe(404)
  expect(json).toEqual({
    error: {
      message: "You have no corpus 'no-such'. GET /v1/vector_stores lists your vector stores.",
      type: 'invalid_request_error',
      param: 'spillway.retrieval.corpus',
      code: 'no_such_corpus',
    },
  })
})
