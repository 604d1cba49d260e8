import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai'
import { generateText, isStepCount, jsonSchema, Output, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { answers, FakeUpstream, fails } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { checkedResponse, readEvents } from '../support/responses-shapes.ts'
import { ACME_KEY, MODEL, postJson, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'
import { callsTool, saysDelta } from '../support/tool-engine.ts'

/** `POST /v1/responses` to its official clients, over the simulated engine and over a scripted one. */

let platform: TestPlatform
let client: OpenAI

beforeAll(async () => {
  platform = await startPlatform()
  client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

const input = 'What is a weir? A weir is a low dam. It raises the level of a river.'

describe('the openai SDK, over the simulated engine', () => {
  it('answers, and says what the answer cost', async () => {
    const response = await client.responses.create({ model: MODEL, input, max_output_tokens: 400 })
    const { output_text: _sdk, ...told } = response
    expect(checkedResponse(told).store).toBe(false)
    expect(response.output_text).toContain('Simulated')
    expect(response.status).toBe('completed')
    expect(response.usage?.input_tokens).toBeGreaterThan(10)
    const settled = await platform.settled(`req_${response.id.slice('resp_'.length)}`)
    expect(settled.outcome).toBe('completed')
  })

  it('cuts an answer at its bound, and says so', async () => {
    const response = await client.responses.create({ model: MODEL, input, max_output_tokens: 16 })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    expect(response.usage?.output_tokens).toBe(16)
  })

  it('streams events that add up to the answer', async () => {
    const stream = client.responses.stream({ model: MODEL, input, max_output_tokens: 400, instructions: 'Be brief.' })
    let text = ''
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta
    })
    const final = await stream.finalResponse()
    expect(text).toBe(final.output_text)
    expect(final.status).toBe('completed')
    const whole = await client.responses.create({
      model: MODEL,
      input,
      max_output_tokens: 400,
      instructions: 'Be brief.',
    })
    expect(whole.output_text).toBe(final.output_text)
  })

  it('takes tools and formats as chat does', async () => {
    const tools = [{ type: 'function' as const, name: 'look', parameters: { type: 'object' }, strict: false }]
    const free = await client.responses.create({ model: MODEL, input, tools, max_output_tokens: 400 })
    expect(free.output[0]?.type).toBe('message')
    const json = await client.responses.create({ model: MODEL, input, text: { format: { type: 'json_object' } } })
    expect(JSON.parse(json.output_text)).toHaveProperty('answer')
    const forced = client.responses.create({ model: MODEL, input, tools, tool_choice: 'required' })
    await expect(forced).rejects.toMatchObject({ status: 400, param: 'tool_choice' })
    const format = { type: 'json_schema' as const, name: 'n', schema: { type: 'object' } }
    const schema = client.responses.create({ model: MODEL, input, text: { format } })
    await expect(schema).rejects.toMatchObject({ status: 400, param: 'text.format' })
  })

  it('returns an alias as the alias, and knows no other model', async () => {
    const response = await client.responses.create({ model: 'gpt-4o-mini', input, max_output_tokens: 16 })
    expect(response.model).toBe('gpt-4o-mini')
    const other = client.responses.create({ model: 'gpt-9', input })
    await expect(other).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
  })

  it('refuses what it has not, in the shape of OpenAI', async () => {
    for (const body of [
      { model: MODEL },
      { model: MODEL, input, background: true },
      { model: MODEL, messages: [] },
      '[]',
      '{',
    ]) {
      const reply = await postJson(`${platform.baseURL}/responses`, body)
      expect(reply.status).toBe(400)
      checked('error', await reply.json())
    }
  })

  it('says what it took and did not honour', async () => {
    const body = { model: MODEL, input, max_output_tokens: 16, truncation: 'auto' }
    const reply = await postJson(`${platform.baseURL}/responses`, body)
    expect(reply.headers.get('x-spillway-ignored')).toBe('truncation')
    expect(checkedResponse(await reply.json())).toMatchObject({ truncation: 'disabled' })
  })

  it('takes the twelve fields of Codex', async () => {
    const body = {
      model: MODEL,
      instructions: 'You are a coding agent.',
      input: [
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Use the shell.' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] },
      ],
      tools: [{ type: 'function', name: 'shell', description: 'Runs.', strict: false, parameters: { type: 'object' } }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      reasoning: { effort: 'medium', summary: 'auto' },
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'a-session',
      client_metadata: { 'x-codex-installation-id': 'a' },
    }
    const reply = await postJson(`${platform.baseURL}/responses`, body)
    expect(reply.headers.get('content-type')).toContain('text/event-stream')
    const events = readEvents(await reply.text())
    expect(events.at(-1)?.type).toBe('response.completed')
  })
})

describe('over a scripted engine', () => {
  let upstream: FakeUpstream
  let gateway: TestPlatform
  let sdk: OpenAI
  let provider: OpenAIProvider

  beforeAll(async () => {
    upstream = await FakeUpstream.start()
    gateway = await startPlatform(upstreamTree([upstream.url]))
    sdk = new OpenAI({ baseURL: gateway.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    provider = createOpenAI({ baseURL: gateway.baseURL, apiKey: ACME_KEY })
  })
  afterAll(async () => {
    await gateway.close()
    await upstream.close()
  })
  beforeEach(() => {
    upstream.behaviour = answers()
    upstream.seen.length = 0
  })

  const look = {
    type: 'function' as const,
    name: 'look',
    parameters: { type: 'object', properties: {} },
    strict: false,
  }

  it.each([false, true])('makes the round trip of a call, streamed: %s', async (stream) => {
    upstream.behaviour = callsTool({ reasoning: 'I must look.', name: 'look', arguments: '{"at":"dam"}' })
    const ask = (items: OpenAI.Responses.ResponseInput): Promise<OpenAI.Responses.Response> => {
      const body = { model: MODEL, input: items, tools: [look], store: false }
      return stream ? sdk.responses.stream(body).finalResponse() : sdk.responses.create(body)
    }
    const first: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'What is there?' }]
    const called = await ask(first)
    expect(called.usage).toMatchObject({
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 5 },
      output_tokens: 8,
      output_tokens_details: { reasoning_tokens: 3 },
    })
    expect(called.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    const call = called.output[1] as OpenAI.Responses.ResponseFunctionToolCall
    expect(call).toMatchObject({ call_id: 'call_up_1', name: 'look', arguments: '{"at":"dam"}' })
    const answered = await ask([
      ...first,
      ...(called.output as OpenAI.Responses.ResponseInputItem[]),
      { type: 'function_call_output', call_id: call.call_id, output: 'a weir' },
    ])
    expect(answered.output_text).toBe('It says: a weir')
    expect(upstream.seen.at(-1)?.body['messages']).toEqual([
      { role: 'user', content: 'What is there?' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'I must look.',
        tool_calls: [{ id: 'call_up_1', type: 'function', function: { name: 'look', arguments: '{"at":"dam"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_up_1', content: 'a weir' },
    ])
  })

  it('parses an answer of a schema', async () => {
    upstream.behaviour = saysDelta({ content: '{"depth":3}' })
    const schema = {
      type: 'object',
      properties: { depth: { type: 'number' } },
      required: ['depth'],
      additionalProperties: false,
    }
    const format = { type: 'json_schema' as const, name: 'pool', schema, strict: true }
    const parsed = await sdk.responses.parse({ model: MODEL, input: 'How deep?', text: { format } })
    expect(JSON.parse(parsed.output_text)).toEqual({ depth: 3 })
    expect(upstream.seen[0]?.body['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'pool', schema, strict: true },
    })
    const { output } = await generateText({
      model: provider(MODEL),
      prompt: 'How deep?',
      output: Output.object({ schema: jsonSchema<{ depth: number }>(schema as object) }),
      maxRetries: 0,
    })
    expect(output).toEqual({ depth: 3 })
  })

  it('tells a refusal', async () => {
    upstream.behaviour = saysDelta({ refusal: 'I cannot.' })
    const refused = await sdk.responses.stream({ model: MODEL, input: 'Do.' }).finalResponse()
    expect(refused.output[0]).toMatchObject({ type: 'message', content: [{ type: 'refusal', refusal: 'I cannot.' }] })
  })

  it('breaks off with an error that the SDK throws', async () => {
    upstream.behaviour = answers({ breaksAfter: 2, everyMs: 5 })
    const stream = await sdk.responses.create({ model: MODEL, input: 'Hi.', stream: true })
    const seen: string[] = []
    const reading = (async () => {
      for await (const { type } of stream) seen.push(type)
    })()
    await expect(reading).rejects.toThrow(/engine/i)
    expect(seen).toContain('response.output_text.delta')
    const reply = await postJson(`${gateway.baseURL}/responses`, { model: MODEL, input: 'Hi.', stream: true })
    const events = readEvents(await reply.text())
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed'])
  })

  it('passes the refusal of an engine on, with its status', async () => {
    upstream.behaviour = fails(400, {
      error: { message: 'No such thing.', type: 'invalid_request_error', param: 'tools', code: null },
    })
    await expect(sdk.responses.create({ model: MODEL, input: 'Hi.' })).rejects.toMatchObject({ status: 400 })
  })

  describe('the AI SDK with its default provider', () => {
    it('generates and streams text, with usage and the reason of the end', async () => {
      const whole = await generateText({ model: provider(MODEL), prompt: 'Hi.', maxRetries: 0 })
      expect(whole.text).toBe('The weir holds the wäter lëvel 🌊.')
      expect(whole.usage).toMatchObject({ inputTokens: 11, outputTokens: 6 })
      expect(upstream.seen[0]?.path).toBe('/v1/chat/completions')
      const streamed = streamText({ model: provider(MODEL), prompt: 'Hi.', maxRetries: 0 })
      const parts: string[] = []
      for await (const part of streamed.textStream) parts.push(part)
      expect(parts.join('')).toBe(whole.text)
      expect(await streamed.finishReason).toBe('stop')
      expect((await streamed.usage).outputTokens).toBe(6)
    })

    it.each(['generateText', 'streamText'])('calls tools in steps: %s', async (way) => {
      upstream.behaviour = callsTool({ reasoning: 'I must look.', name: 'look', arguments: '{"at":"dam"}' })
      const asked: unknown[] = []
      const options = {
        model: provider(MODEL),
        prompt: 'What is there?',
        tools: {
          look: tool({
            inputSchema: jsonSchema<{ at: string }>({ type: 'object', properties: { at: { type: 'string' } } }),
            execute: (found) => {
              asked.push(found)
              return 'a weir'
            },
          }),
        },
        stopWhen: isStepCount(3),
        maxRetries: 0,
        providerOptions: { openai: { store: false, forceReasoning: true, reasoningSummary: 'auto' } },
      }
      const text = way === 'generateText' ? (await generateText(options)).text : await streamText(options).text
      expect(asked).toEqual([{ at: 'dam' }])
      expect(text).toContain('a weir')
      expect(upstream.seen.at(-1)?.body['messages']).toContainEqual(
        expect.objectContaining({ role: 'assistant', reasoning_content: 'I must look.' }),
      )
    })

    it('sees a stream that breaks off as an error', async () => {
      upstream.behaviour = answers({ breaksAfter: 2, everyMs: 5 })
      const errors: unknown[] = []
      const streamed = streamText({
        model: provider(MODEL),
        prompt: 'Hi.',
        maxRetries: 0,
        onError: ({ error }) => void errors.push(error),
      })
      await streamed.consumeStream()
      expect(errors).toHaveLength(1)
    })
  })
})
