import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { buildConfig } from '../../src/config/load.ts'
import { answers, type Behaviour, FakeUpstream } from '../support/fake-upstream.ts'
import { PassingEngine, takes } from '../support/passing-engine.ts'
import {
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from '../support/start-platform.ts'

/** What follows from a tenant's policy for what its clients send, over HTTP, in every dialect. */
const EMAIL = 'ada@canary-example.com'
const TEXT = `Write to ${EMAIL}.`
const messages = [{ role: 'user', content: TEXT }]
const chat = { model: MODEL, messages }

const tenant = (id: string, screening: Tree, more: Tree = {}): Tree => ({
  id,
  slo: 'patient',
  screening,
  keys: [{ id: `${id}-1`, hash: hashKey(`sk-${id}`) }],
  ...more,
})

let engine: FakeUpstream
let passing: PassingEngine
let platform: TestPlatform
let tree: Tree

beforeAll(async () => {
  engine = await FakeUpstream.start(answers())
  passing = await PassingEngine.start(takes())
  const upstream = { kind: 'http-openai', timeoutMs: 5_000 }
  tree = testTree({
    models: [
      { name: MODEL },
      { name: 'embed', kind: 'embedding' },
      { name: 'rank', kind: 'ranking', transit: [] },
      { name: 'order', kind: 'ranking', transit: ['rerank', 'tokenize'] },
      { name: 'sound', kind: 'audio' },
    ],
    pools: [
      { model: MODEL, backend: upstream, replicas: [engine.url] },
      ...['embed', 'rank'].map((model) => ({ model, backend: { kind: 'simulated', profile: 'h100-llama-1b' } })),
      ...['order', 'sound'].map((model) => ({
        model,
        backend: { ...upstream, engine: 'none' },
        replicas: [passing.url],
      })),
    ],
    tenants: [
      tenant('redacts', { pii: 'redact' }, { answerCache: { similarityMin: 0.99 } }),
      tenant('restores', { pii: 'redact', reversible: true }, { answerCache: { similarityMin: 0.99 } }),
      tenant('blocks', { pii: 'block', binary: 'refuse' }),
      tenant('nameless', { names: 'redact' }),
      tenant('free', {}),
    ],
  })
  platform = await startPlatform(tree)
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await engine?.close()
  await passing?.close()
})

async function send(key: string, path: string, body: object | string | FormData) {
  const isForm = body instanceof FormData
  const response = await fetch(platform.address + path, {
    method: 'POST',
    headers: { ...authorization(`sk-${key}`), ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    headers: response.headers,
    json: text.startsWith('{') ? JSON.parse(text) : {},
  }
}

const sentOn = (): string => engine.seen.at(-1)?.text ?? ''

describe('redact', () => {
  it('sends on what is left, in the client’s own writing', async () => {
    const body = `{ "model": "${MODEL}",  "temperature": 1.0, "messages": [{"role":"user","content":"${TEXT}"}] }`
    expect((await send('redacts', '/v1/chat/completions', body)).status).toBe(200)
    expect(sentOn()).toContain('"temperature": 1.0')
    expect(sentOn()).toContain('"content":"Write to <EMAIL>."')
    expect(sentOn()).not.toContain('canary')
  })

  it('leaves a body without findings, and one of a tenant without screens, as they were written', async () => {
    const plain = `{ "model": "${MODEL}",  "messages": [{"role":"user","content":"h\\u00e9llo"}] }`
    await send('redacts', '/v1/chat/completions', plain)
    const screened = sentOn()
    await send('free', '/v1/chat/completions', plain)
    expect(screened).toBe(sentOn())
    expect(screened).toContain('h\\u00e9llo')
    await send('free', '/v1/chat/completions', chat)
    expect(sentOn()).toContain(EMAIL)
  })

  it('takes names out, whether their thread is there already or not', async () => {
    const content = 'My name is Anna Schmidt, and I have a question.'
    const named = { model: MODEL, messages: [{ role: 'user', content }] }
    for (let i = 0; i < 3; i++) {
      const { status } = await send('nameless', '/v1/chat/completions', named)
      expect(status).toBe(200)
      expect(sentOn()).toContain('My name is <PERSON>, and I have a question.')
    }
  })

  it('journals what was found, without the text', async () => {
    const { headers } = await send('redacts', '/v1/chat/completions', chat)
    const id = headers.get('x-request-id') ?? ''
    await platform.settled(id)
    const entry = platform.entries.find((one) => one.kind === 'screened' && one.ticketId === id)
    expect(entry).toMatchObject({
      verdict: 'passed',
      findings: [{ screen: 'pii', direction: 'input', category: 'email', action: 'redact', count: 1 }],
    })
    expect(JSON.stringify(platform.entries)).not.toContain('canary')
  })

  it('may be answered from the cache; with pseudonyms it is not', async () => {
    const isLookedUp: boolean[] = []
    for (const key of ['redacts', 'restores']) {
      const { headers } = await send(key, '/v1/chat/completions', { ...chat, temperature: 0 })
      const id = headers.get('x-request-id') ?? ''
      await platform.settled(id)
      isLookedUp.push(platform.entries.some((entry) => entry.kind === 'answer-looked-up' && entry.ticketId === id))
    }
    expect(sentOn()).toMatch(/Write to <EMAIL_[0-9a-f]{12}>\./)
    expect(isLookedUp).toEqual([true, false])
  })
})

describe('pseudonyms', () => {
  /** Says what it was asked, as a chat. */
  const echoes: Behaviour = (call) => {
    const asked = (call.body['messages'] as Array<{ content: string }>).at(-1)?.content ?? ''
    return answers({ words: [asked] })(call)
  }

  it('come back as the values that they stand for, streamed or not, and no engine has seen these', async () => {
    engine.behaviour = echoes
    try {
      const whole = await send('restores', '/v1/chat/completions', chat)
      expect(whole.json.choices[0].message.content).toBe(TEXT)
      const streamed = await send('restores', '/v1/chat/completions', { ...chat, stream: true })
      expect(streamed.text).toContain(EMAIL)
      const gone = await send('redacts', '/v1/chat/completions', chat)
      expect(gone.json.choices[0].message.content).toBe('Write to <EMAIL>.')
      expect(engine.seen.slice(-3).map(({ text }) => text.includes('canary'))).toEqual([false, false, false])
    } finally {
      engine.behaviour = answers()
    }
  })
})

const form = (): FormData => {
  const made = new FormData()
  made.set('model', 'sound')
  made.set('prompt', TEXT)
  made.set('file', new File(['x'], 'a.wav'))
  return made
}

describe('block', () => {
  it.each<readonly [string, object | FormData]>([
    ['/v1/chat/completions', chat],
    ['/v1/chat/completions', { ...chat, stream: true }],
    ['/v1/completions', { model: MODEL, prompt: TEXT }],
    ['/v1/responses', { model: MODEL, input: TEXT }],
    ['/v1/messages', { model: MODEL, max_tokens: 5, messages }],
    ['/v1/messages/count_tokens', { model: MODEL, messages }],
    ['/v1/embeddings', { model: 'embed', input: TEXT }],
    ['/v1/rerank', { model: 'order', query: TEXT, documents: ['a'] }],
    ['/tokenize', { model: 'order', prompt: TEXT }],
    ['/v2/models/rank/infer', { inputs: [{ name: 'q', datatype: 'BYTES', shape: [1], data: [TEXT] }] }],
    ['/infer', { tenant_id: 'blocks', tokens_requested: 1, note: TEXT }],
    [`/openai/deployments/${MODEL}/chat/completions`, { messages }],
  ])('refuses at %s %#, in the words of the route and without the text', async (path, body) => {
    const before = [engine.seen.length, passing.seen.length]
    const { status, json, text } = await send('blocks', path, body)
    expect(status).toBe(400)
    expect(text).not.toContain('canary')
    expect(text).toContain('email')
    if (path.startsWith('/v2')) expect(typeof json.error).toBe('string')
    else if (path.startsWith('/v1/messages'))
      expect(json).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    else expect(json.error).toMatchObject({ code: 'content_filter', type: 'invalid_request_error' })
    expect([engine.seen.length, passing.seen.length]).toEqual(before)
  })

  it('is an outcome', async () => {
    const { headers } = await send('blocks', '/v1/chat/completions', chat)
    expect(await platform.settled(headers.get('x-request-id') ?? '')).toMatchObject({ outcome: 'blocked', attempts: 0 })
  })

  it('refuses what no screen can read, where the policy says so', async () => {
    const content = [{ type: 'image_url', image_url: { url: 'https://x.example/a.png' } }]
    const picture = { model: MODEL, messages: [{ role: 'user', content }] }
    expect(await send('blocks', '/v1/chat/completions', picture)).toMatchObject({
      status: 400,
      json: { error: { code: 'content_filter' } },
    })
    expect((await send('blocks', '/v1/audio/transcriptions', form())).status).toBe(400)
    expect((await send('redacts', '/v1/chat/completions', picture)).status).toBe(200)
    expect((await send('redacts', '/v1/audio/transcriptions', form())).status).toBe(200)
    expect(passing.seen.at(-1)?.body?.begin).toContain('Write to <EMAIL>.')
  })
})

it('refuses token ids of tenants with screens', async () => {
  const ids = { model: MODEL, prompt: [1, 2, 3] }
  expect(await send('redacts', '/v1/completions', ids)).toMatchObject({
    status: 400,
    json: { error: { code: 'unsupported_parameter', param: 'prompt' } },
  })
  expect((await send('free', '/v1/completions', ids)).status).toBe(200)
  const tensor = { inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [1, 2], data: [1, 2] }] }
  expect((await send('redacts', '/v2/models/rank/infer', tensor)).status).toBe(400)
  expect((await send('redacts', '/detokenize', { model: 'order', tokens: [1] })).status).toBe(400)
})

it('takes up a policy with a reload', async () => {
  const next = { ...tree, screening: { pii: 'redact' } }
  const config = buildConfig({ path: 'test.yaml', tree: next, lineOf: () => undefined }, {})
  await platform.reload(() => config, { by: 'ada', because: 'a test' })
  await send('free', '/v1/chat/completions', chat)
  expect(sentOn()).not.toContain('canary')
})
