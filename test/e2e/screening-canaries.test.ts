import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, dropsConnection, FakeUpstream, fails } from '../support/fake-upstream.ts'
import { PassingEngine, takes } from '../support/passing-engine.ts'
import { SCREENED_ROUTES } from '../support/screened-routes.ts'

/**
 * Law L14, seen from outside: values that are nowhere else are sent through every route that takes text, with engines
 * that answer, refuse, break off and go, and in bodies that are wrong; then the process is killed, and everything that it
 * has written is searched for them: the log, the store, the spool, the recording, and what engines were sent.
 */
const LOCAL = 'zebra7f3acanary'
const EMAIL = `${LOCAL}@leak-example.com`
const CARD = '4539148803436467'
const IBAN = 'DE89370400440532013000'
/** Written in two parts, so that no scanner of repositories takes them for keys of somebody. */
const AWS_KEY = `AKIA${'Z7QNW3RXK5TLM2VB'}`
const GITHUB_TOKEN = `ghp_${'q8Zt3LmW0xKc7RbN5vYd2HsJ9fPgT4aE6uXo'}`
const CANARIES = [LOCAL, CARD, IBAN, AWS_KEY, GITHUB_TOKEN]
const TEXT = `Write to ${EMAIL} about card ${CARD} and account ${IBAN}. Use ${AWS_KEY} and ${GITHUB_TOKEN}, please.`

/** A document rests as it was uploaded: its value may be in the store, and at the embedder that indexes it. */
const STORED = 'yak5d1estored'
const DOCUMENT = `The weir is kept by ${STORED}@leak-example.com since the flood.`

const KEY = 'sk-canaries'
const ADMIN_KEY = 'sk-canaries-admin'

interface Way {
  readonly route: string
  readonly path?: string
  readonly body: object | string | FormData
  readonly headers?: Readonly<Record<string, string>>
}

const part = (type: string) => ({ type, text: TEXT })
const chat = {
  model: 'sim',
  messages: [
    { role: 'system', content: TEXT },
    {
      role: 'user',
      content: [part('text'), { type: 'image_url', image_url: { url: `https://x.example/?q=${EMAIL}` } }],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: `call_${LOCAL}@leak-example.com`,
          type: 'function',
          function: { name: 'send', arguments: JSON.stringify({ to: EMAIL, card: Number(CARD), text: TEXT }) },
        },
      ],
    },
    { role: 'tool', tool_call_id: `call_${LOCAL}@leak-example.com`, content: TEXT },
    { role: 'user', content: 'Go on.', name: EMAIL },
  ],
  tools: [
    {
      type: 'function',
      function: {
        name: 'send',
        description: TEXT,
        parameters: { type: 'object', properties: { [EMAIL]: { default: TEXT } } },
      },
    },
  ],
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { description: TEXT } } },
  user: EMAIL,
  metadata: { about: TEXT },
  unknown_member: { deep: [[TEXT]] },
  max_tokens: 8,
}
const input = [
  { type: 'message', role: 'user', content: [part('input_text')] },
  { type: 'function_call', call_id: 'c1', name: 'send', arguments: JSON.stringify({ to: EMAIL }) },
  { type: 'function_call_output', call_id: 'c1', output: TEXT },
]
const responses = { model: 'sim', instructions: TEXT, input, user: EMAIL, metadata: { about: TEXT } }
const anthropic = {
  model: 'sim',
  max_tokens: 8,
  system: [part('text')],
  messages: [
    { role: 'user', content: [part('text')] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'send', input: { to: EMAIL } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: TEXT }] },
  ],
  metadata: { user_id: EMAIL },
}
const pairs = { model: 'order', query: TEXT, documents: [TEXT, { text: TEXT }], more: TEXT }
const completion = { model: 'sim', prompt: [TEXT, TEXT], suffix: TEXT, max_tokens: 4 }
const embedding = { model: 'embed', input: [TEXT], user: EMAIL }

function form(model: string): FormData {
  const made = new FormData()
  made.set('prompt', TEXT)
  made.set('model', model)
  made.set('file', new File([new Uint8Array([0, 1, 2])], `${EMAIL}.wav`))
  made.set('language', TEXT)
  return made
}

const WAYS: readonly Way[] = [
  { route: 'POST /v1/chat/completions', body: chat },
  { route: 'POST /v1/chat/completions', body: { ...chat, stream: true } },
  { route: 'POST /v1/chat/completions', body: { ...chat, store: true } },
  {
    route: 'POST /v1/chat/completions',
    body: { model: 'sim', temperature: 0, messages: [{ role: 'user', content: TEXT }] },
  },
  { route: 'POST /v1/chat/completions', body: { ...chat, spillway: { retrieval: { corpus: EMAIL } } } },
  { route: 'POST /v1/chat/completions', body: chat, headers: { 'x-spillway-corpus': EMAIL, 'x-session-id': EMAIL } },
  {
    route: 'POST /v1/chat/completions/*',
    path: '/v1/chat/completions/chatcmpl-none',
    body: { metadata: { about: TEXT } },
  },
  { route: 'POST /v1/completions', body: completion },
  { route: 'POST /v1/responses', body: responses },
  { route: 'POST /v1/responses', body: { ...responses, stream: true } },
  { route: 'POST /v1/responses', body: { ...responses, previous_response_id: EMAIL } },
  { route: 'POST /v1/embeddings', body: embedding },
  { route: 'POST /v1/messages', body: anthropic },
  { route: 'POST /v1/messages', body: { ...anthropic, stream: true } },
  { route: 'POST /v1/messages/count_tokens', body: anthropic },
  { route: 'POST /openai/deployments/*', path: '/openai/deployments/sim/chat/completions', body: chat },
  { route: 'POST /openai/v1/chat/completions', body: chat },
  { route: 'POST /openai/v1/completions', body: completion },
  { route: 'POST /openai/v1/responses', body: responses },
  { route: 'POST /openai/v1/embeddings', body: embedding },
  { route: 'POST /openai/responses', body: responses },
  { route: 'POST /infer', body: { tenant_id: EMAIL, tokens_requested: 1 } },
  { route: 'POST /v1/audio/speech', body: { model: 'sound', input: TEXT, voice: EMAIL } },
  { route: 'POST /v1/audio/transcriptions', body: form('sound') },
  { route: 'POST /v1/audio/translations', body: form('sound') },
  { route: 'POST /v1/images/generations', body: { model: 'picture', prompt: TEXT, user: EMAIL } },
  { route: 'POST /v1/images/edits', body: form('picture') },
  { route: 'POST /v1/images/variations', body: form('picture') },
  { route: 'POST /v1/rerank', body: pairs },
  { route: 'POST /rerank', body: pairs },
  { route: 'POST /v1/score', body: { model: 'order', text_1: TEXT, text_2: [TEXT] } },
  { route: 'POST /tokenize', body: { model: 'order', prompt: TEXT, messages: [{ role: 'user', content: TEXT }] } },
  { route: 'POST /detokenize', body: { model: 'order', tokens: [1, 2], about: TEXT } },
  {
    route: 'POST /v2/models/*',
    path: '/v2/models/rank/infer',
    body: {
      id: EMAIL,
      inputs: [{ name: 'query', datatype: 'BYTES', shape: [1], data: [TEXT], parameters: { a: TEXT } }],
    },
  },
  { route: 'POST /v1/vector_stores/*', path: '/v1/vector_stores/weir/search', body: { query: TEXT } },
]

/** Bodies that are refused before an engine sees them. */
const WRONG: readonly Way[] = [
  { route: 'not JSON', path: '/v1/chat/completions', body: `{"messages": "${TEXT}` },
  { route: 'the wrong type', path: '/v1/chat/completions', body: { model: 'sim', messages: TEXT } },
  { route: 'no such model', path: '/v1/chat/completions', body: { ...chat, model: EMAIL } },
  { route: 'no such deployment', path: `/openai/deployments/${EMAIL}/chat/completions`, body: chat },
  {
    route: 'a second member',
    path: '/v1/chat/completions',
    body: `{"model":"${EMAIL}",${JSON.stringify(chat).slice(1)}`,
  },
  { route: 'too much', path: '/v1/chat/completions', body: { ...chat, n: 5_000 } },
]

const vectors: Behaviour = ({ res, body }) => {
  const inputs = Array.isArray(body['input']) ? body['input'] : [body['input']]
  const data = inputs.map((_, index) => ({
    index,
    embedding: Array.from({ length: 26 }, (__, i) => (i === 0 ? 1 : 0)),
  }))
  const usage = { prompt_tokens: 1, total_tokens: 1 }
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data, usage }))
}

const byPath =
  (behaviour: Behaviour): Behaviour =>
  (call) =>
    (call.req.url?.endsWith('/embeddings') === true ? vectors : behaviour)(call)

const folder = new TestFolder()
let engine: FakeUpstream
let passing: PassingEngine
let child: Child
let address: string

beforeAll(async () => {
  engine = await FakeUpstream.start(byPath(answers()))
  passing = await PassingEngine.start(takes())
  const upstream = { kind: 'http-openai', timeoutMs: 5_000 }
  const config = folder.write('spillway.yaml', {
    server: { port: 0 },
    logging: { level: 'info', format: 'json' },
    store: { path: join(folder.path, 'store') },
    ledger: { enabled: true },
    record: { path: join(folder.path, 'recording.jsonl') },
    retrieval: { budgetMs: 20_000, embedder: { url: engine.url, model: 'letters', dimensions: 26 } },
    models: [
      { name: 'sim' },
      { name: 'embed', kind: 'embedding' },
      { name: 'rank', kind: 'ranking', transit: [] },
      { name: 'sound', kind: 'audio' },
      { name: 'picture', kind: 'image' },
      { name: 'order', kind: 'ranking', transit: ['rerank', 'tokenize'] },
    ],
    pools: [
      ...['sim', 'embed'].map((model) => ({ model, backend: upstream, replicas: [engine.url] })),
      { model: 'rank', backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
      ...['sound', 'picture', 'order'].map((model) => ({
        model,
        backend: { ...upstream, engine: 'none' },
        replicas: [passing.url],
      })),
    ],
    screening: { pii: 'redact', secrets: 'redact' },
    admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
    tenants: ['plain', 'reversible'].map((id) => ({
      id,
      slo: 'patient',
      waitMsMax: 1_000,
      storing: {},
      answerCache: {},
      screening: { reversible: id === 'reversible' },
      allowance: { budgets: [{ period: 'day', tokens: 1_000_000_000, perUser: true }] },
      keys: [{ id: `${id}-1`, hash: hashKey(`${KEY}-${id}`) }],
    })),
  })
  child = new Child({ args: [join(import.meta.dirname, '../../src/cli/cli.ts'), 'serve', '--config', config] })
  address = await child.address(30_000)
}, 60_000)
afterAll(async () => {
  await child?.end()
  await engine?.close()
  await passing?.close()
  folder.remove()
})

async function send(way: Way, tenant: string): Promise<{ status: number; text: string }> {
  const { body } = way
  const isForm = body instanceof FormData
  const response = await fetch(address + (way.path ?? way.route.split(' ')[1] ?? ''), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}-${tenant}`,
      ...(!isForm && { 'content-type': 'application/json' }),
      ...way.headers,
    },
    body: isForm ? body : typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text().catch(() => 'broken off') }
}

/** What an engine may have taken out of a body, whatever way it was written. */
function spellings(text: string): string {
  try {
    return text + JSON.stringify(JSON.parse(text)) + decodeURIComponent(text.replaceAll('%', '%25'))
  } catch {
    return text
  }
}

const leaks = (text: string, canaries = CANARIES): string[] => canaries.filter((canary) => text.includes(canary))

function filesUnder(path: string): string[] {
  return readdirSync(path).flatMap((name) => {
    const at = join(path, name)
    return statSync(at).isDirectory() ? filesUnder(at) : [at]
  })
}

describe('canaries', () => {
  it('are sent through every screened route', () => {
    expect([...SCREENED_ROUTES].filter((route) => !WAYS.some((way) => way.route === route))).toEqual([])
  })

  it('are at no engine, whichever route they take', { timeout: 120_000 }, async () => {
    await fetch(`${address}/v1/vector_stores`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}-plain`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'weir' }),
    })
    for (const tenant of ['plain', 'reversible']) {
      for (const way of WAYS) {
        const { status } = await send(way, tenant)
        expect(status, `${tenant}: ${way.route} ${status}`).toBeLessThan(500)
      }
    }
    expect(engine.seen.length).toBeGreaterThan(20)
    for (const { path, text } of engine.seen) expect(leaks(spellings(text)), path).toEqual([])
    expect(passing.seen.length).toBeGreaterThan(10)
    for (const { path, body } of passing.seen) expect(leaks(spellings(body?.begin ?? '')), path).toEqual([])
  })

  it('are at no engine when it refuses, breaks off or goes, or the body is wrong', { timeout: 120_000 }, async () => {
    const troubles: readonly Behaviour[] = [
      fails(500, { error: { message: 'broken' } }),
      fails(400, { error: { message: 'this prompt is not for me', type: 'bad', param: null, code: null } }),
      fails(429, { error: { message: 'busy' } }, { 'retry-after': '1' }),
      dropsConnection,
      answers({ breaksAfter: 2 }),
    ]
    for (const trouble of troubles) {
      engine.behaviour = byPath(trouble)
      for (const body of [chat, { ...chat, stream: true }]) {
        await send({ route: 'POST /v1/chat/completions', body }, 'plain')
        await send({ route: 'POST /v1/responses', body: responses }, 'reversible')
      }
    }
    engine.behaviour = byPath(answers())
    for (const wrong of WRONG) {
      const { status, text } = await send(wrong, 'plain')
      expect(status, wrong.route).toBeLessThan(500)
      if (wrong.route !== 'no such deployment') expect(leaks(text), wrong.route).toEqual([])
    }
    for (const { path, text } of engine.seen) expect(leaks(spellings(text)), path).toEqual([])
  })

  it('of a document are in no prompt', { timeout: 60_000 }, async () => {
    const stored = { documents: [{ name: `${STORED}@leak-example.com.txt`, text: DOCUMENT }] }
    const added = await send({ route: '', path: '/v1/vector_stores/weir/documents', body: stored }, 'plain')
    expect(added.status).toBe(200)
    const found = await eventually(
      'the document is found',
      async () => {
        const { text } = await send(
          { route: '', path: '/v1/vector_stores/weir/search', body: { query: 'weir kept flood' } },
          'plain',
        )
        return text.includes('since the flood') ? text : undefined
      },
      30_000,
    )
    expect(leaks(found, [STORED])).toEqual([])
    expect(found).toContain('<EMAIL>')
    const messages = [{ role: 'user', content: 'Who keeps the weir since the flood?' }]
    const retrieval = { corpus: 'weir', include_passages: true }
    const asked = { model: 'sim', messages, spillway: { retrieval } }
    const { text } = await send({ route: 'POST /v1/chat/completions', body: asked }, 'plain')
    expect(leaks(text, [STORED])).toEqual([])
    const prompts = engine.seen.filter(({ path }) => path.endsWith('/chat/completions'))
    expect(prompts.at(-1)?.text).toContain('kept by <EMAIL>')
    for (const { text: prompt } of prompts) expect(leaks(prompt, [STORED])).toEqual([])
  })

  it('are in nothing that was written', { timeout: 60_000 }, async () => {
    const admin = { authorization: `Bearer ${ADMIN_KEY}` }
    for (const path of ['/metrics', '/admin/v1/refusals', '/admin/v1/changes']) {
      const page = await (await fetch(address + path, { headers: admin })).text()
      expect(leaks(page, [...CANARIES, STORED]), path).toEqual([])
    }
    const stored = await fetch(`${address}/v1/chat/completions`, { headers: { authorization: `Bearer ${KEY}-plain` } })
    const listed = await stored.text()
    expect(listed).toContain('chatcmpl-')
    expect(leaks(listed)).toEqual([])
    await child.end()
    expect(leaks(child.out + child.err, [...CANARIES, STORED])).toEqual([])
    expect(child.out.length).toBeGreaterThan(1_000)
    const files = filesUnder(folder.path)
    expect(files.some((file) => file.includes('recording'))).toBe(true)
    expect(files.some((file) => file.includes('spool'))).toBe(true)
    for (const file of files) expect(leaks(readFileSync(file, 'latin1')), file).toEqual([])
  })
})
