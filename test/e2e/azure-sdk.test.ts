import { AzureOpenAI } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checked } from '../support/openai-shapes.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Azure's own class of the official SDK: other addresses, another header for the key, the same answers. */
const messages = [{ role: 'user' as const, content: 'What is a spillway for? A spillway lets water pass a dam.' }]
const ask = { messages, max_tokens: 12, seed: 7 }

let platform: TestPlatform
let azure: AzureOpenAI

const EMBEDDER = 'text-embedding-3-small'

beforeAll(async () => {
  platform = await startPlatform(
    testTree({
      models: [
        { name: MODEL, aliases: ['gpt-4o-mini', 'team/small'] },
        { name: EMBEDDER, kind: 'embedding' },
      ],
      pools: [
        { model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
        { model: EMBEDDER, backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
      ],
    }),
  )
  azure = new AzureOpenAI({
    endpoint: platform.address,
    apiKey: ACME_KEY,
    apiVersion: '2024-10-21',
    maxRetries: 0,
  })
})
afterAll(() => platform.close())

const post = (path: string, body: unknown, headers: Record<string, string> = { 'api-key': ACME_KEY }) =>
  fetch(platform.address + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

describe('a deployment', () => {
  it('answers a chat, whole and streamed, under its own name', async () => {
    const whole = checked('chat', await azure.chat.completions.create({ model: 'gpt-4o-mini', ...ask }))
    expect(whole.model).toBe('gpt-4o-mini')
    let text = ''
    for await (const chunk of await azure.chat.completions.create({ model: 'gpt-4o-mini', ...ask, stream: true }))
      text += checked('chatChunk', chunk).choices[0]?.delta.content ?? ''
    expect(text).toBe(whole.choices[0]!.message.content)
  })

  it('continues a prompt and makes vectors', async () => {
    checked('completion', await azure.completions.create({ model: MODEL, prompt: 'Water', max_tokens: 5 }))
    const { data } = await azure.embeddings.create({ model: EMBEDDER, input: ['one', 'two'] })
    expect(data).toHaveLength(2)
  })

  it('is named by its address alone: a body may name no model, or another', async () => {
    for (const body of [ask, { ...ask, model: 'elsewhere' }]) {
      const answer = await post('/openai/deployments/gpt-4o-mini/chat/completions?api-version=any', body)
      expect(await answer.json()).toMatchObject({ model: 'gpt-4o-mini' })
    }
    const slash = await post('/openai/deployments/team%2Fsmall/chat/completions', ask)
    expect(await slash.json()).toMatchObject({ model: 'team/small' })
  })

  it.each([
    ['/openai/deployments/nowhere/chat/completions', 404, 'model_not_found'],
    ['/openai/deployments/sim/images/generations', 404, 'unknown_url'],
    [`/openai/deployments/${MODEL}/embeddings`, 400, null],
  ])('that is not there: %s is %i', async (path, status, code) => {
    const answer = await post(path, { ...ask, input: 'a' })
    expect(answer.status).toBe(status)
    const { error } = checked('error', (await answer.json()) as { error: { code: string } })
    if (code !== null) expect(error.code).toBe(code)
  })

  it('refuses bodies that are no objects, and strangers', async () => {
    for (const body of [[], null, 5])
      expect((await post('/openai/deployments/sim/chat/completions', body)).status).toBe(400)
    for (const headers of [{}, { 'api-key': 'sk-nobody' }])
      expect((await post('/openai/deployments/sim/chat/completions', ask, headers)).status).toBe(401)
  })
})

describe('the newer addresses', () => {
  it('have responses and models without a deployment', async () => {
    const response = await azure.responses.create({ model: 'gpt-4o-mini', input: 'Hello?', max_output_tokens: 16 })
    expect(response).toMatchObject({ object: 'response', model: 'gpt-4o-mini' })
    const seen: string[] = []
    for await (const { id } of azure.models.list()) seen.push(id)
    expect(seen).toEqual([MODEL, 'gpt-4o-mini', 'team/small', EMBEDDER])
  })

  it('are the usual ones under another name', async () => {
    const answer = await post('/openai/v1/chat/completions', { model: MODEL, ...ask })
    checked('chat', await answer.json())
    const models = await fetch(`${platform.address}/openai/v1/models?api-version=preview`, {
      headers: { 'api-key': ACME_KEY },
    })
    checked('models', await models.json())
    expect((await post('/openai/v1/messages', { model: MODEL, ...ask })).status).toBe(404)
  })
})
