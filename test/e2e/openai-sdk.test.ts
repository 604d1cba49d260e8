import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from 'openai'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Refusal, RefusalCode } from '../../src/domain/outcome.ts'
import { closeServer, listen } from '../../src/gateway/http-listen.ts'
import { type HttpServerOptions, makeHttpServer, type Route } from '../../src/gateway/http-server.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, gated } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** The official SDK is the judge: what it accepts, throws and counts is what we promise. */

const PROMPT = 'What is a spillway for? A spillway lets water pass a dam. It protects the dam from being overtopped.'
const messages = [{ role: 'user' as const, content: PROMPT }]
const ask = { model: MODEL, messages, max_tokens: 12 }

let platform: TestPlatform
let ai: OpenAI

beforeAll(async () => {
  platform = await startPlatform()
  ai = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

describe('chat completions', () => {
  it('answers whole', async () => {
    const answer = checked('chat', await ai.chat.completions.create(ask))
    expect(answer.model).toBe(MODEL)
    expect(answer.id).toMatch(/^chatcmpl-/)
    expect(answer.choices[0]!.message.content).toContain('Simulated answer')
    expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens)
    expect(answer._request_id).toMatch(/^req_/)
  })

  it('streams the same answer that it gives whole', async () => {
    const whole = await ai.chat.completions.create({ ...ask, seed: 7 })
    const stream = await ai.chat.completions.create({ ...ask, seed: 7, stream: true })
    let text = ''
    const chunks = []
    for await (const chunk of stream) {
      chunks.push(checked('chatChunk', chunk))
      text += chunk.choices[0]?.delta.content ?? ''
    }
    expect(text).toBe(whole.choices[0]!.message.content)
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
    expect(chunks.map((chunk) => chunk.choices[0]!.delta.role).filter(Boolean)).toEqual(['assistant'])
    expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant')
    expect(chunks.map((chunk) => chunk.choices[0]!.finish_reason).filter(Boolean)).toEqual(['length'])
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('length')
    expect(chunks.every((chunk) => chunk.usage === undefined || chunk.usage === null)).toBe(true)
  })

  it('gives usage in one last chunk without choices, when asked', async () => {
    const stream = await ai.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } })
    const chunks = []
    for await (const chunk of stream) chunks.push(checked('chatChunk', chunk))
    const last = chunks.pop()!
    expect(last.choices).toEqual([])
    expect(last.usage).toMatchObject({ completion_tokens: 12 })
    expect(chunks.every((chunk) => chunk.usage === null && chunk.choices.length === 1)).toBe(true)
  })

  it("satisfies the SDK's own stream helper, which checks that an answer is whole", async () => {
    const final = await ai.chat.completions.stream({ ...ask, n: 2 }).finalChatCompletion()
    expect(final.choices.map((choice) => [choice.index, choice.finish_reason])).toEqual([
      [0, 'length'],
      [1, 'length'],
    ])
  })

  it('gives n choices, whole and streamed', async () => {
    const whole = checked('chat', await ai.chat.completions.create({ ...ask, n: 3, seed: 1 }))
    expect(whole.choices.map((choice) => choice.index)).toEqual([0, 1, 2])
    const texts = ['', '', '']
    const ends: number[] = []
    for await (const chunk of await ai.chat.completions.create({ ...ask, n: 3, seed: 1, stream: true })) {
      for (const choice of chunk.choices) {
        texts[choice.index] += choice.delta.content ?? ''
        if (choice.finish_reason !== null) ends.push(choice.index)
      }
    }
    expect(texts).toEqual(whole.choices.map((choice) => choice.message.content))
    expect(ends.toSorted((a, b) => a - b)).toEqual([0, 1, 2])
    expect(whole.usage!.completion_tokens).toBe(36)
  })

  it.each([{ max_tokens: 5 }, { max_completion_tokens: 5 }, { max_tokens: 99, max_completion_tokens: 5 }])(
    'stops at %o',
    async (bounds) => {
      const answer = await ai.chat.completions.create({ model: MODEL, messages, ...bounds })
      expect(answer.usage!.completion_tokens).toBe(5)
      expect(answer.choices[0]!.finish_reason).toBe('length')
    },
  )

  it('ends at a stop sequence without saying it', async () => {
    const whole = await ai.chat.completions.create({ ...ask, seed: 3 })
    expect(whole.choices[0]!.message.content).toContain('taken')
    for (const stop of ['taken', ['nowhere', 'taken from']]) {
      const cut = await ai.chat.completions.create({ ...ask, seed: 3, stop })
      expect(cut.choices[0]!.message.content).toBe('Simulated answer, ')
      expect(cut.choices[0]!.finish_reason).toBe('stop')
    }
    const empty = await ai.chat.completions.create({ ...ask, stop: 'Simulated' })
    expect(empty.choices[0]!.message.content).toBe('')
  })

  it('repeats itself for one seed, and not for another', async () => {
    const once = async (seed: number) => {
      const answer = await ai.chat.completions.create({ model: MODEL, messages, seed, max_tokens: 100 })
      return answer.choices[0]!.message.content
    }
    const [first, again, ...others] = await Promise.all([once(5), once(5), once(6), once(7), once(8)])
    expect(again).toBe(first)
    expect(others.some((other) => other !== first)).toBe(true)
  })

  it('gives JSON when JSON is asked for', async () => {
    const answer = await ai.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: 'Say something in JSON.' }],
      response_format: { type: 'json_object' },
      max_tokens: 1_000,
    })
    expect(JSON.parse(answer.choices[0]!.message.content!)).toMatchObject({ simulated: true })
  })

  it('accepts what it does not use: tools, penalties, metadata, images', async () => {
    const answer = await ai.chat.completions.create({
      ...ask,
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is on this picture? A dam.' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'A dam.' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      presence_penalty: 0.5,
      logit_bias: { '50256': -100 },
      metadata: { a: 'b' },
      store: false,
      user: 'someone',
    })
    expect(answer.choices[0]!.message.content).toContain('Simulated')
  })
})

describe('completions', () => {
  it('answers whole and streamed', async () => {
    const params = { model: MODEL, prompt: PROMPT, max_tokens: 10, seed: 2 }
    const whole = checked('completion', await ai.completions.create(params))
    expect(whole.id).toMatch(/^cmpl-/)
    let text = ''
    for await (const chunk of await ai.completions.create({ ...params, stream: true })) {
      text += checked('completionChunk', chunk).choices[0]!.text
    }
    expect(text).toBe(whole.choices[0]!.text)
  })

  it('answers a list of prompts in order, n choices each, and counts each prompt once', async () => {
    const prompt = ['Rivers rise. Rivers rise again.', 'Dams stand. Dams stand still.']
    const answer = await ai.completions.create({ model: MODEL, prompt, n: 2, max_tokens: 20 })
    expect(answer.choices.map((choice) => /Rivers|Dams/.exec(choice.text)?.[0])).toEqual([
      'Rivers',
      'Rivers',
      'Dams',
      'Dams',
    ])
    const alone = await Promise.all(
      prompt.map((one) => ai.completions.create({ model: MODEL, prompt: one, max_tokens: 1 })),
    )
    expect(answer.usage!.prompt_tokens).toBe(alone.reduce((sum, one) => sum + one.usage!.prompt_tokens, 0))
  })

  it('takes prompts as token ids', async () => {
    const answer = await ai.completions.create({ model: MODEL, prompt: [1, 2, 3, 4], max_tokens: 3 })
    expect(answer.usage!.completion_tokens).toBe(3)
  })
})

describe('models', () => {
  it('lists models and aliases, and retrieves each', async () => {
    const list = await ai.models.list()
    checked('models', { object: list.object, data: list.data })
    expect(list.data.map((model) => model.id)).toEqual([MODEL, 'gpt-4o-mini'])
    for (const { id } of list.data) expect(checked('model', await ai.models.retrieve(id)).id).toBe(id)
    await expect(ai.models.retrieve('gpt-17')).rejects.toBeInstanceOf(NotFoundError)
  })

  it('answers under the alias that was asked for', async () => {
    const answer = await ai.chat.completions.create({ ...ask, model: 'gpt-4o-mini' })
    expect(answer.model).toBe('gpt-4o-mini')
  })
})

describe('errors', () => {
  const failure = async (promise: Promise<unknown>): Promise<APIError> => {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(APIError)
    checked('error', { error: (error as APIError).error })
    return error as APIError
  }

  it('401 without a valid key', async () => {
    const stranger = new OpenAI({ baseURL: platform.baseURL, apiKey: 'sk-nobody', maxRetries: 2 })
    const error = await failure(stranger.chat.completions.create(ask))
    expect(error).toBeInstanceOf(AuthenticationError)
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' })
    expect(error.requestID).toMatch(/^req_/)
  })

  it('404 for a model that is not there', async () => {
    const error = await failure(ai.chat.completions.create({ ...ask, model: 'gpt-17' }))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
    expect(error.message).toContain('gpt-17')
  })

  it.each([
    ['messages', { messages: [] }],
    ['n', { n: 999 }],
    ['temperature', { temperature: 'hot' as unknown as number }],
    ['tool_choice', { tool_choice: 'required' as const }],
  ])('400 that names %s', async (param, wrong) => {
    for (const stream of [false, true]) {
      const error = await failure(ai.chat.completions.create({ ...ask, ...wrong, stream }) as Promise<unknown>)
      expect(error).toBeInstanceOf(BadRequestError)
      expect(error).toMatchObject({ status: 400, param, type: 'invalid_request_error' })
    }
  })

  it('400 when the prompt is longer than the context', async () => {
    const long = 'water '.repeat(40_000)
    const error = await failure(ai.chat.completions.create({ ...ask, messages: [{ role: 'user', content: long }] }))
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded' })
  })
})

describe('aborts', () => {
  /** Half a minute of tokens: an engine that is idle sooner was let go. */
  const endless = { model: MODEL, messages, max_tokens: 4_000, ignore_eos: true }

  it('in the middle of a stream: settled as cancelled, with the tokens that were sent counted', async () => {
    const before =
      (await platform.metric('spillway_tokens_total', { tenant: 'acme', model: MODEL, kind: 'output' })) ?? 0
    const abort = new AbortController()
    const { data: stream, request_id } = await ai.chat.completions
      .create({ ...endless, seed: 11, stream: true }, { signal: abort.signal })
      .withResponse()
    let seen = 0
    for await (const _ of stream) if (++seen === 5) abort.abort()
    const settled = await platform.settled(request_id!)
    expect(settled).toMatchObject({ outcome: 'cancelled', because: 'client-gone' })
    expect(settled.usage.outputTokens).toBeGreaterThanOrEqual(5)
    expect(settled.usage.outputTokens).toBeLessThan(endless.max_tokens)
    expect(await platform.metric('spillway_tokens_total', { tenant: 'acme', model: MODEL, kind: 'output' })).toBe(
      before + settled.usage.outputTokens,
    )
    await eventually('the engine is idle', async () => (await platform.engine()).runningCount === 0)
  })

  it('before a whole answer is there', async () => {
    const cancelled = () =>
      platform.metric('spillway_requests_total', { tenant: 'acme', model: MODEL, outcome: 'cancelled', code: 'none' })
    const before = (await cancelled()) ?? 0
    const abort = new AbortController()
    const answer = ai.chat.completions.create(endless, { signal: abort.signal })
    const failed = answer.then(
      () => undefined,
      (error: unknown) => error,
    )
    await eventually('the engine runs', async () => (await platform.engine()).runningCount === 1)
    abort.abort()
    expect(await failed).toBeInstanceOf(APIUserAbortError)
    await eventually('the engine is idle', async () => (await platform.engine()).runningCount === 0)
    await eventually('it is counted', async () => (await cancelled()) === before + 1)
  })
})

describe('retries', () => {
  /** A server of ours that refuses this many times, then answers; it counts how often it was asked. */
  async function refusing(times: number, refusal: Refusal) {
    const seen = { asked: 0 }
    const route: Route = {
      method: 'POST',
      path: '/v1/chat/completions',
      handle(exchange) {
        seen.asked++
        if (seen.asked <= times) exchange.sendRefusal(refusal)
        else exchange.sendJson(200, JSON.stringify({ id: 'a', object: 'chat.completion', choices: [] }))
      },
    }
    const server = makeHttpServer([route], HTTP_OPTIONS)
    const address = await listen(server, { host: '127.0.0.1', port: 0 })
    const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'any', maxRetries: 2 })
    return {
      client,
      seen,
      close: () => closeServer(server, { answersEnded: Promise.resolve(), patienceEnded: Promise.resolve() }),
    }
  }

  it.each<[code: RefusalCode, status: number]>([
    ['concurrency-limit', 429],
    ['queue-full', 503],
  ])('comes back after %s (%i) when retry-after-ms says so', async (code, _status) => {
    const refusal: Refusal = { code, because: 'Full.', blame: 'tenant', retryAfterUs: 60_000 }
    const { client, seen, close } = await refusing(2, refusal)
    const timers = vi.spyOn(globalThis, 'setTimeout')
    await client.chat.completions.create(ask)
    const waitsMs = timers.mock.calls.map(([, ms]) => ms)
    timers.mockRestore()
    expect(seen.asked).toBe(3)
    // On its own the SDK would wait at least 375 ms.
    expect(waitsMs.filter((ms) => ms === 60)).toHaveLength(2)
    await close()
  })

  it.each([
    ['never worth it', undefined],
    ['worth it only after more than a minute', 3_600_000_000],
  ])('stays away when it is %s', async (_why, retryAfterUs) => {
    const refusal: Refusal = { code: 'concurrency-limit', because: 'Over.', blame: 'tenant', retryAfterUs }
    const { client, seen, close } = await refusing(9, refusal)
    await expect(client.chat.completions.create(ask)).rejects.toBeInstanceOf(RateLimitError)
    expect(seen.asked).toBe(1)
    await close()
  })

  it('gets its answer from a platform that was full a moment ago', async () => {
    const { behaviour, openGate } = gated()
    const upstream = await FakeUpstream.start(behaviour)
    const full = await startPlatform(upstreamTree([upstream.url], { queue: { requestsMax: 1 } }, 1))
    const client = new OpenAI({ baseURL: full.baseURL, apiKey: ACME_KEY, maxRetries: 2 })
    const all = Promise.all([1, 2, 3].map(() => client.chat.completions.create(ask).withResponse()))
    const outcomes = () => full.entries.flatMap((entry) => (entry.kind === 'settled' ? [entry.outcome] : []))
    await eventually('one is refused', () => outcomes().includes('rejected'))
    openGate()
    for (const { data } of await all) checked('chat', data)
    expect(outcomes().toSorted()).toEqual(['completed', 'completed', 'completed', 'rejected'])
    await full.close()
    await upstream.close()
  })
})

const HTTP_OPTIONS: HttpServerOptions = {
  basePath: '',
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  idleTimeoutMs: 1_000,
  connectionsMax: 100,
  makeRequestId: () => 'req_1',
  onFault: (_where, error) => {
    throw error
  },
}
