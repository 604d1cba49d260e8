import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { PassingEngine, takes } from '../support/passing-engine.ts'
import { startEmbedder } from '../support/servers.ts'
import { authorization, MODEL, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/**
 * No way in escapes a budget. Every tenant here may make one request in a minute: whichever way it takes, no other way
 * is open afterwards; and after a chat, no way is open.
 */
interface Way {
  readonly name: string
  readonly path: string
  readonly method?: string
  readonly body?: (tenantId: string) => object | FormData
  readonly by?: 'token' | 'peer'
  /** The answer that costs a request; 200 if absent. */
  readonly status?: number
}

const messages = [{ role: 'user', content: 'Hi.' }]
const chat = { model: MODEL, messages, max_tokens: 1 }
const batch = { input_file_id: 'file-batch-none', endpoint: '/v1/chat/completions', completion_window: '24h' }
const texts = (name: string, ...data: string[]) => ({ name, datatype: 'BYTES', shape: [data.length], data })

const CHAT: Way = { name: 'chat', path: '/v1/chat/completions', body: () => chat }

const WAYS: readonly Way[] = [
  CHAT,
  { name: 'streamed chat', path: '/v1/chat/completions', body: () => ({ ...chat, stream: true }) },
  { name: 'completion', path: '/v1/completions', body: () => ({ model: MODEL, prompt: 'Hi', max_tokens: 1 }) },
  { name: 'response', path: '/v1/responses', body: () => ({ model: MODEL, input: 'Hi', max_output_tokens: 16 }) },
  {
    name: 'response in the background',
    path: '/v1/responses',
    body: () => ({ model: MODEL, input: 'Hi', max_output_tokens: 16, background: true }),
  },
  { name: 'message', path: '/v1/messages', body: () => ({ model: MODEL, max_tokens: 1, messages }) },
  { name: 'a deployment of Azure', path: `/openai/deployments/${MODEL}/chat/completions`, body: () => ({ messages }) },
  { name: 'a stored response', method: 'GET', path: '/v1/responses/resp_none', status: 404 },
  { name: 'its items', method: 'GET', path: '/v1/responses/resp_none/input_items', status: 404 },
  { name: 'its end', path: '/v1/responses/resp_none/cancel', body: () => ({}), status: 404 },
  { name: 'speech', path: '/v1/audio/speech', body: () => ({ model: 'sound', input: 'Hi', voice: 'a' }) },
  { name: 'transcript', path: '/v1/audio/transcriptions', body: () => form('sound') },
  { name: 'translation', path: '/v1/audio/translations', body: () => form('sound') },
  { name: 'picture', path: '/v1/images/generations', body: () => ({ model: 'picture', prompt: 'a weir' }) },
  { name: 'changed picture', path: '/v1/images/edits', body: () => form('picture') },
  { name: 'another picture', path: '/v1/images/variations', body: () => form('picture') },
  { name: 'ranking', path: '/v1/rerank', body: () => ({ model: 'order', query: 'a', documents: ['b'] }) },
  {
    name: 'ranking at its short address',
    path: '/rerank',
    body: () => ({ model: 'order', query: 'a', documents: ['b'] }),
  },
  { name: 'score', path: '/v1/score', body: () => ({ model: 'order', text_1: 'a', text_2: ['b'] }) },
  { name: 'tokens of a text', path: '/tokenize', body: () => ({ model: 'order', prompt: 'a' }) },
  { name: 'text of tokens', path: '/detokenize', body: () => ({ model: 'order', tokens: [1] }) },
  { name: 'stored answers', method: 'GET', path: '/v1/chat/completions' },
  { name: 'a stored answer', method: 'GET', path: '/v1/chat/completions/none', status: 404 },
  { name: 'its messages', method: 'GET', path: '/v1/chat/completions/none/messages', status: 404 },
  { name: 'embedding', path: '/v1/embeddings', body: () => ({ model: 'embed', input: 'Hi' }) },
  { name: 'moderation', path: '/v1/moderations', body: () => ({ input: 'Hi' }) },
  { name: '/infer', path: '/infer', body: (id) => ({ tenant_id: id, tokens_requested: 1 }) },
  {
    name: 'tensors',
    path: '/v2/models/rank/infer',
    body: () => ({ inputs: [texts('query', 'a'), texts('documents', 'b', 'c')] }),
  },
  { name: 'file upload', path: '/v1/files', body: () => upload('assistants') },
  { name: 'list of files', method: 'GET', path: '/v1/files' },
  { name: 'a file', method: 'GET', path: '/v1/files/none', status: 404 },
  { name: 'removal of a file', method: 'DELETE', path: '/v1/files/none', status: 404 },
  { name: 'file of lines', path: '/v1/files', body: () => upload('batch') },
  { name: 'a new batch', path: '/v1/batches', body: () => batch, status: 400 },
  { name: 'list of batches', method: 'GET', path: '/v1/batches' },
  { name: 'a batch', method: 'GET', path: '/v1/batches/none', status: 404 },
  { name: 'end of a batch', path: '/v1/batches/none/cancel', body: () => ({}), status: 404 },
  { name: 'new vector store', path: '/v1/vector_stores', body: () => ({ name: 'v' }) },
  { name: 'list of vector stores', method: 'GET', path: '/v1/vector_stores' },
  { name: 'search', path: '/v1/vector_stores/none/search', body: () => ({ query: 'q' }), status: 404 },
  {
    name: 'documents',
    path: '/v1/vector_stores/none/documents',
    body: () => ({ documents: [{ name: 'd', text: 't' }] }),
    status: 404,
  },
  { name: 'chat by token', path: '/v1/chat/completions', body: () => chat, by: 'token' },
  { name: 'files by token', method: 'GET', path: '/v1/files', by: 'token' },
  { name: 'chat by a peer', path: '/v1/chat/completions', body: () => chat, by: 'peer' },
  { name: 'embedding by a peer', path: '/v1/embeddings', body: () => ({ model: 'embed', input: 'Hi' }), by: 'peer' },
]

function upload(purpose: string): FormData {
  const form = new FormData()
  form.set('file', new File(['text'], 'a.txt'))
  form.set('purpose', purpose)
  return form
}

function form(model: string): FormData {
  const form = new FormData()
  form.set('model', model)
  form.set('file', new File(['text'], 'a.bin'))
  return form
}

const PEER_KEY = 'sk-test-peer'
const keyOf = (tenantId: string): string => `sk-test-${tenantId}`
const tenantIds = WAYS.flatMap((_, i) => [`first-${i}`, `last-${i}`])

let platform: TestPlatform
let issuer: OAuth2Server
let embedder: Awaited<ReturnType<typeof startEmbedder>>
let passing: PassingEngine

beforeAll(async () => {
  issuer = new OAuth2Server()
  await issuer.issuer.keys.generate('RS256', { kid: 'one' })
  await issuer.start(0, '127.0.0.1')
  embedder = await startEmbedder()
  passing = await PassingEngine.start(takes())
  const passed = (model: string) => ({
    model,
    region: 'eu',
    backend: { kind: 'http-openai', engine: 'none' },
    replicas: [passing.url],
  })
  const simulated = { kind: 'simulated', profile: 'h100-llama-1b' }
  const allowance = { requests: { perMinute: 1, burst: 1 } }
  platform = await startPlatform(
    testTree({
      models: [
        { name: MODEL },
        { name: 'embed', kind: 'embedding' },
        { name: 'rank', kind: 'ranking', transit: [] },
        { name: 'sound', kind: 'audio' },
        { name: 'picture', kind: 'image' },
        { name: 'order', kind: 'ranking', transit: ['rerank', 'tokenize'] },
      ],
      pools: [
        ...[MODEL, 'embed', 'rank'].map((model) => ({ model, region: 'eu', backend: simulated })),
        ...['sound', 'picture', 'order'].map(passed),
      ],
      retrieval: { budgetMs: 60_000, embedder: { url: embedder.url, model: 'letters', dimensions: 26 } },
      oidc: { issuers: [{ id: 'corp', issuer: issuer.issuer.url, audience: ['spillway'] }] },
      regions: {
        local: 'eu',
        peers: [{ region: 'us', url: 'http://127.0.0.1:1', apiKey: 'sk-other', hash: hashKey(PEER_KEY) }],
      },
      tenants: tenantIds.map((id) => ({
        id,
        slo: 'patient',
        storing: {},
        allowance,
        keys: [{ id: `${id}-key`, hash: hashKey(keyOf(id)) }],
      })),
    }),
  )
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await issuer?.stop()
  await embedder?.close()
  await passing?.close()
})

async function headersOf({ by }: Way, tenantId: string): Promise<Record<string, string>> {
  if (by === 'peer') return { ...authorization(PEER_KEY), 'x-spillway-tenant': tenantId }
  if (by === undefined) return authorization(keyOf(tenantId))
  const token = await issuer.issuer.buildToken({
    kid: 'one',
    scopesOrTransform: (_header, payload) => {
      Object.assign(payload, { aud: 'spillway', sub: 'ada', tenant: tenantId })
    },
  })
  return authorization(token)
}

async function take(way: Way, tenantId: string): Promise<number> {
  const body = way.body?.(tenantId)
  const json = body !== undefined && !(body instanceof FormData)
  const response = await fetch(platform.address + way.path, {
    method: way.method ?? 'POST',
    headers: { ...(await headersOf(way, tenantId)), ...(json && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
  })
  await response.text()
  return response.status
}

describe.each(WAYS.map((way, i) => ({ way, i, name: way.name })))('$name', ({ way, i }) => {
  it('spends the budget that a chat spends', { timeout: 60_000 }, async () => {
    expect(await take(way, `first-${i}`)).toBe(way.status ?? 200)
    expect(await take(CHAT, `first-${i}`)).toBe(429)
    expect(await take(way, `first-${i}`)).toBe(429)
  })

  it('is closed when a chat has spent it', { timeout: 60_000 }, async () => {
    expect(await take(CHAT, `last-${i}`)).toBe(200)
    expect(await take(way, `last-${i}`)).toBe(429)
  })
})

it('covers every route that asks a model or stores', async () => {
  const document = (await (await fetch(`${platform.address}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  const spending = Object.keys(document.paths).filter(
    (path) =>
      /^\/(v1|v2|infer|openai|rerank|tokenize|detokenize)/.test(path) &&
      !/^\/v1\/models|^\/v2(\/health|\/models\/[^/]+(\/ready)?$|$)/.test(path) &&
      // Administration, what was used, and a count that asks no engine and stores nothing: the ingress meters them.
      !/^\/v1\/spillway\/|^\/v1\/organization\/|^\/v1\/messages\/count_tokens$/.test(path),
  )
  const covered = (path: string): boolean =>
    WAYS.some((way) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(way.path)) ||
    path.startsWith('/openai/') ||
    path.startsWith('/v1/vector_stores/') ||
    path.startsWith('/v1/files/')
  expect(spending.filter((path) => !covered(path))).toEqual([])
  expect(spending.length).toBeGreaterThan(8)
})
