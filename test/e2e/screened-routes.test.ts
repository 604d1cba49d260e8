import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { CANARY, type ScreenedPlatform, startScreened } from '../support/screened-platform.ts'
import { SCREENED_ROUTES } from '../support/screened-routes.ts'
import { ACME_KEY, authorization } from '../support/start-platform.ts'

/** Every route that gives text of an engine, with an engine that says values in every place of its answers. */
let started: ScreenedPlatform
beforeAll(async () => {
  started = await startScreened()
}, 60_000)
afterAll(() => started?.close())

const messages = [{ role: 'user' as const, content: 'Hi.' }]
const chat = { model: 'sim', messages, max_tokens: 200 }

describe('law L14: no byte of an answer leaves before its screen saw it', () => {
  const form = (model: string): FormData => {
    const made = new FormData()
    made.set('model', model)
    made.set('file', new File([new Uint8Array([0, 1])], 'a.wav'))
    return made
  }
  const pairs = { model: 'order', query: 'q', documents: ['d'] }
  const response = { model: 'sim', input: 'Hi' }
  /** A way to ask for an answer, or why there is none of an engine. */
  const WAYS: Readonly<Record<string, ReadonlyArray<{ path?: string; body: object }> | string>> = {
    'POST /v1/chat/completions': [
      { body: chat },
      { body: { ...chat, stream: true } },
      { body: { ...chat, store: true } },
    ],
    'POST /v1/completions': [
      { body: { model: 'sim', prompt: 'Hi' } },
      { body: { model: 'sim', prompt: 'Hi', stream: true } },
    ],
    'POST /v1/responses': [{ body: response }, { body: { ...response, stream: true } }],
    'POST /v1/messages': [{ body: { ...chat } }, { body: { ...chat, stream: true } }],
    'POST /v1/embeddings': [{ body: { model: 'embed', input: ['a', 'b'] } }],
    'POST /openai/deployments/*': [{ path: '/openai/deployments/sim/chat/completions', body: { messages } }],
    'POST /openai/v1/chat/completions': [{ body: chat }],
    'POST /openai/v1/completions': [{ body: { model: 'sim', prompt: 'Hi' } }],
    'POST /openai/v1/responses': [{ body: response }],
    'POST /openai/v1/embeddings': [{ body: { model: 'embed', input: 'a' } }],
    'POST /openai/responses': [{ body: response }],
    'POST /infer': [{ body: { tenant_id: 'acme', tokens_requested: 5, model: 'sim' } }],
    'POST /v1/audio/speech': [{ body: { model: 'sound', input: 'x', voice: 'a' } }],
    'POST /v1/audio/transcriptions': [{ body: form('sound') }],
    'POST /v1/audio/translations': [{ body: form('sound') }],
    'POST /v1/images/generations': [{ body: { model: 'picture', prompt: 'x' } }],
    'POST /v1/images/edits': [{ body: form('picture') }],
    'POST /v1/images/variations': [{ body: form('picture') }],
    'POST /v1/rerank': [{ body: pairs }],
    'POST /rerank': [{ body: pairs }],
    'POST /v1/score': [{ body: { model: 'order', text_1: 'a', text_2: ['b'] } }],
    'POST /tokenize': [{ body: { model: 'order', prompt: 'a' } }],
    'POST /v2/models/*': [
      { path: '/v2/models/rank/infer', body: { inputs: [{ name: 'q', datatype: 'BYTES', shape: [1], data: ['a'] }] } },
    ],
    'POST /detokenize': 'token ids are refused where texts are screened',
    'POST /v1/messages/count_tokens': 'counted here',
    'POST /v1/chat/completions/*': 'what is stored, which was screened before',
    'POST /v1/vector_stores/*': 'passages, which are screened when they are read',
  }

  it('has a way for every route that takes text', () => {
    expect([...SCREENED_ROUTES].filter((route) => WAYS[route] === undefined)).toEqual([])
  })

  it.each(
    Object.entries(WAYS).flatMap(([route, ways]) =>
      typeof ways === 'string' ? [] : ways.map((way) => ({ route, ...way })),
    ),
  )('$route', async ({ route, path, body }) => {
    const isForm = body instanceof FormData
    const asked = started.engine.bodies.length
    const answer = await fetch(started.platform.baseURL.replace(/\/v1$/, '') + (path ?? route.split(' ')[1]), {
      method: 'POST',
      headers: { ...authorization(), ...(!isForm && { 'content-type': 'application/json' }) },
      body: isForm ? body : JSON.stringify(body),
    })
    const text = await answer.text()
    expect(answer.status, text).toBe(200)
    expect(started.engine.bodies.length).toBe(asked + 1)
    expect(text).not.toMatch(CANARY)
    for (const [, value] of answer.headers) expect(value).not.toMatch(CANARY)
  })

  it('a response in the background, when it is read', async () => {
    const asked = started.engine.bodies.length
    const client = new OpenAI({ baseURL: started.platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const { id } = await client.responses.create({ ...response, background: true })
    const told = await eventually('the response has ended', async () => {
      const now = await client.responses.retrieve(id)
      return now.status === 'completed' ? now : undefined
    })
    expect(started.engine.bodies.length).toBe(asked + 1)
    expect(told.output.length).toBeGreaterThan(0)
    expect(JSON.stringify(told)).not.toMatch(CANARY)
  }, 60_000)
})
