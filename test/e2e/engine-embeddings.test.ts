import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InsideEngine, metricOf, postJson } from '../support/engine-process.ts'
import { ACME_KEY, startPlatform, testTree } from '../support/start-platform.ts'

/** `spillway engine --kind embedding`: to a client and to a router it looks like vLLM with a pooling model. */

let engine: InsideEngine
beforeAll(async () => {
  engine = await InsideEngine.start(
    '--kind',
    'embedding',
    '--model',
    'bge',
    '--profile',
    'h100-llama-1b',
    '--max-model-len',
    '100',
  )
})
afterAll(() => engine.stop())

const ask = (body: object) => postJson(`${engine.url}/v1/embeddings`, body)

it('answers OpenAI’s client, and counts as vLLM does', async () => {
  expect(engine.said).toContain('bge, for embeddings, 100 tokens')
  const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const answer = await client.embeddings.create({ model: 'bge', input: ['a weir', 'a dam'] })
  expect(answer.data).toHaveLength(2)
  expect(answer.data[0]!.embedding).toHaveLength(768)
  expect(answer).toMatchObject({ object: 'list', model: 'bge', id: expect.stringMatching(/^embd-/) })
  expect(await metricOf(engine.url, 'prompt_tokens_total')).toBe(answer.usage.prompt_tokens)
  expect(await metricOf(engine.url, 'num_requests_running')).toBe(0)
  expect(await metricOf(engine.url, 'request_success_total', { finished_reason: 'stop' })).toBe(1)
  expect(await metricOf(engine.url, 'e2e_request_latency_seconds_count')).toBe(2)
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['bge'])
})

describe('says what is wrong in vLLM’s words', () => {
  it.each([
    [{ input: '' }, 400, 'input'],
    [{ input: 'a', dimensions: 9_999 }, 400, 'dimensions'],
    [{ input: 'word '.repeat(500) }, 400, 'input'],
    [{ input: 'a', model: 'other' }, 404, 'model'],
  ])('%#', async (body, status, param) => {
    const response = await ask(body)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { code: status, param } })
  })

  it('about what this kind of model cannot do', async () => {
    const chat = await postJson(`${engine.url}/v1/chat/completions`, { messages: [{ role: 'user', content: 'hi' }] })
    expect(chat.status).toBe(400)
    expect(await chat.json()).toMatchObject({ error: { message: /does not support Chat Completions/ } })
    const generative = await InsideEngine.start('--model', 'llama')
    const vectors = await postJson(`${generative.url}/v1/embeddings`, { input: 'a' })
    expect(vectors.status).toBe(400)
    expect(await vectors.json()).toMatchObject({ error: { message: /does not support Embeddings/ } })
    await generative.stop()
  })
})

it('serves the platform’s embeddings from behind', async () => {
  const platform = await startPlatform(
    testTree({
      models: [{ name: 'embed', kind: 'embedding' }],
      pools: [
        {
          model: 'embed',
          backend: { kind: 'http-openai', engine: 'vllm', upstreamModel: 'bge' },
          replicas: [`${engine.url}/v1`],
        },
      ],
    }),
  )
  const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  const through = await client.embeddings.create({ model: 'embed', input: 'a weir' })
  const direct = (await (await ask({ input: 'a weir' })).json()) as typeof through
  expect(through.data[0]!.embedding).toEqual(direct.data[0]!.embedding)
  expect(through.usage.prompt_tokens).toBe(direct.usage.prompt_tokens)
  await platform.close()
})
