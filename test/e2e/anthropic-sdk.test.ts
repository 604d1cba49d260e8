import Anthropic, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import type { Refusal } from '../../src/domain/outcome.ts'
import { ANTHROPIC_ERRORS } from '../../src/gateway/anthropic-errors.ts'
import { closeServer, listen } from '../../src/gateway/http-listen.ts'
import { makeHttpServer, type Route } from '../../src/gateway/http-server.ts'
import { anthropicChecked, eventsOf } from '../support/anthropic-shapes.ts'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** The official SDK is the judge of the Messages dialect; the simulated engine answers. */
const content = 'What is a spillway for? A spillway lets water pass a dam. It protects the dam from being overtopped.'
const messages = [{ role: 'user' as const, content }]
const ask = { model: MODEL, messages, max_tokens: 12 }

let platform: TestPlatform
let claude: Anthropic

beforeAll(async () => {
  platform = await startPlatform()
  claude = new Anthropic({ baseURL: platform.address, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

const failure = async (promise: Promise<unknown>): Promise<APIError> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(APIError)
  return error as APIError
}

/** An error of ours: in Anthropic's shape, with the id of its request in body and header. */
const refusal = async (promise: Promise<unknown>): Promise<APIError> => {
  const error = await failure(promise)
  const { request_id } = anthropicChecked('error', error.error as { request_id: string })
  expect(error.requestID).toBe(request_id)
  return error
}

describe('messages', () => {
  it('answers whole', async () => {
    const answer = anthropicChecked('message', { ...(await claude.messages.create(ask)) })
    expect(answer.model).toBe(MODEL)
    expect(answer.content).toEqual([{ type: 'text', text: expect.stringContaining('Simulated answer') }])
    expect(answer).toMatchObject({ stop_reason: 'max_tokens', stop_sequence: null, usage: { output_tokens: 12 } })
    expect(answer.usage.input_tokens).toBeGreaterThan(10)
  })

  it('streams the same answer that it gives whole, in events of the right shape and order', async () => {
    const whole = await claude.messages.create({ ...ask, seed: 7 } as typeof ask)
    const body = { ...ask, seed: 7, stream: true }
    const raw = await postJson(`${platform.address}/v1/messages?beta=true`, body, { 'anthropic-beta': 'tomorrow-1' })
    expect(raw.headers.get('content-type')).toContain('text/event-stream')
    const events = eventsOf(await raw.text())
    expect(events[0]!.data['message']).toMatchObject({ usage: { input_tokens: expect.any(Number) } })
    expect(new Set(events.slice(2, -3).map(({ name }) => name))).toEqual(new Set(['content_block_delta']))

    const stream = claude.messages.stream({ ...ask, seed: 7 } as typeof ask)
    let text = ''
    stream.on('text', (piece) => {
      text += piece
    })
    const final = await stream.finalMessage()
    // The SDK adds a member of its own.
    const { parsed_output: _, ...message } = final
    expect(anthropicChecked('message', message)).toEqual({ ...whole, id: final.id })
    expect([{ type: 'text', text }]).toEqual(whole.content)
  })

  it('takes what Claude Code sends: system as a list, cache marks, thinking, metadata, tools, betas', async () => {
    const tool = { name: 'Bash', description: 'Runs.', input_schema: { type: 'object' as const, properties: {} } }
    const { data, response } = await claude.beta.messages
      .create({
        ...ask,
        betas: ['claude-code-20250219', 'interleaved-thinking-2025-05-14', 'unheard-of-2031-01-01'],
        system: [
          { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=1;' },
          { type: 'text', text: 'You are a dam.', cache_control: { type: 'ephemeral' } },
        ],
        messages: [
          { role: 'user', content: [{ type: 'text', text: content, cache_control: { type: 'ephemeral', ttl: '1h' } }] },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm.', signature: 'EqoB' },
              { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'dam.txt' }] },
        ],
        tools: [tool],
        tool_choice: { type: 'auto' },
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        metadata: { user_id: 'user_1_session_2' },
        context_management: { edits: [] },
      })
      .withResponse()
    expect(data.content[0]).toMatchObject({ type: 'text' })
    expect(response.headers.get('x-spillway-ignored')).toBe('thinking, context_management')
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect((await fetch(platform.address, { method: 'HEAD' })).status).toBe(200)
  })

  it('answers under the alias that was asked for, for a key as bearer token too', async () => {
    const bearer = new Anthropic({ baseURL: platform.address, apiKey: null, authToken: ACME_KEY, maxRetries: 0 })
    expect((await bearer.messages.create({ ...ask, model: 'gpt-4o-mini' })).model).toBe('gpt-4o-mini')
  })

  it('repeats nothing behind a stop sequence, and says which one it was', async () => {
    const body = { ...ask, seed: 3, stop_sequences: ['nowhere', 'taken'] } as typeof ask
    for (const cut of [await claude.messages.create(body), await claude.messages.stream(body).finalMessage()]) {
      expect(cut.content).toEqual([{ type: 'text', text: 'Simulated answer, ' }])
      expect(cut).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'taken' })
    }
  })
})

describe('tokens and models', () => {
  it('counts a prompt as the engine does, but for what a chat template adds', async () => {
    const asked = { model: MODEL, messages, system: 'Be brief.' }
    // Until the tokenizer is loaded a count is an estimate, and says so.
    const data = await eventually('tokens are counted', async () => {
      const { data: count, response } = await claude.messages.countTokens(asked).withResponse()
      anthropicChecked('tokens', { ...count })
      return response.headers.get('x-spillway-estimated') === null ? count : undefined
    })
    const { usage } = await claude.messages.create({ ...asked, max_tokens: 1 })
    const counted = usage.input_tokens + (usage.cache_read_input_tokens ?? 0)
    expect(Math.abs(data.input_tokens - counted)).toBeLessThanOrEqual(4)
    expect(await platform.engine()).toMatchObject({ runningCount: 0 })
  })

  it('lists models in its own shape', async () => {
    const raw = await fetch(`${platform.baseURL}/models`, {
      headers: { 'x-api-key': ACME_KEY, 'anthropic-version': '2023-06-01' },
    })
    anthropicChecked('models', await raw.json())
    const seen: string[] = []
    for await (const model of claude.models.list()) seen.push(anthropicChecked('model', { ...model }).id)
    expect(seen).toEqual([MODEL, 'gpt-4o-mini'])
    expect((await claude.models.retrieve(MODEL)).display_name).toBe(MODEL)
    const error = await refusal(claude.models.retrieve('claude-17'))
    expect(error).toBeInstanceOf(NotFoundError)
  })
})

describe('errors', () => {
  it('401 without a valid key', async () => {
    const stranger = new Anthropic({ baseURL: platform.address, apiKey: 'sk-nobody', maxRetries: 2 })
    const error = await refusal(stranger.messages.create(ask))
    expect(error).toBeInstanceOf(AuthenticationError)
    expect(error).toMatchObject({ status: 401, type: 'authentication_error' })
  })

  it('404 for a model and an address that are not there', async () => {
    const error = await refusal(claude.messages.create({ ...ask, model: 'claude-17' }))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({ status: 404, type: 'not_found_error' })
    expect(error.message).toContain('claude-17')
    expect(await refusal(claude.post('/v1/messages/nowhere', { body: {} }))).toMatchObject({ status: 404 })
    expect(await refusal(claude.get('/v1/messages'))).toMatchObject({ status: 405, type: 'invalid_request_error' })
  })

  it.each([
    ['messages', { messages: [] }],
    ['max_tokens', { max_tokens: 0 }],
    ['tools[0].type', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['output_config.format', { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }],
  ])('400 that names %s', async (param, wrong) => {
    for (const stream of [false, true]) {
      const body = { ...ask, ...wrong, stream } as Anthropic.MessageCreateParams
      const error = await refusal(claude.messages.create(body) as Promise<unknown>)
      expect(error).toBeInstanceOf(BadRequestError)
      expect(error).toMatchObject({
        status: 400,
        type: 'invalid_request_error',
        error: { error: { spillway: { param } } },
      })
      expect(error.message).toContain(param)
    }
  })

  it('400 when the prompt is longer than the context', async () => {
    const long = [{ role: 'user' as const, content: 'water '.repeat(40_000) }]
    const error = await refusal(claude.messages.create({ ...ask, messages: long }))
    expect(error).toMatchObject({ status: 400, error: { error: { spillway: { code: 'context_length_exceeded' } } } })
  })

  it('413 for a body that is too large', async () => {
    const small = await startPlatform(testTree({ server: { bodyBytesMax: 1_024 } }))
    const client = new Anthropic({ baseURL: small.address, apiKey: ACME_KEY, maxRetries: 0 })
    const long = [{ role: 'user' as const, content: 'water '.repeat(1_000) }]
    const error = await refusal(client.messages.create({ ...ask, messages: long }))
    expect(error).toMatchObject({ status: 413, type: 'request_too_large' })
    await small.close()
  })
})

describe('aborts', () => {
  /** Half a minute of tokens: an engine that is idle sooner was let go. */
  const endless = { ...ask, max_tokens: 4_000, ignore_eos: true }

  it('in the middle of a stream free everything', async () => {
    const { data: stream, request_id } = await claude.messages
      .create({ ...endless, stream: true } as typeof ask & { stream: true })
      .withResponse()
    let seen = 0
    for await (const _ of stream) if (++seen === 5) stream.controller.abort()
    const settled = await platform.settled(request_id!)
    expect(settled).toMatchObject({ outcome: 'cancelled', because: 'client-gone' })
    await eventually('the engine is idle', async () => (await platform.engine()).runningCount === 0)
  })

  it('before a whole answer is there free everything', async () => {
    const abort = new AbortController()
    const failed = failure(claude.messages.create(endless, { signal: abort.signal }))
    await eventually('the engine runs', async () => (await platform.engine()).runningCount === 1)
    abort.abort()
    expect(await failed).toBeInstanceOf(APIUserAbortError)
    await eventually('the engine is idle', async () => (await platform.engine()).runningCount === 0)
  })
})

describe('retries', () => {
  async function refusing(times: number, told: Refusal) {
    const seen = { asked: 0 }
    const route: Route = {
      method: 'POST',
      path: '/v1/messages',
      handle(exchange) {
        seen.asked++
        if (seen.asked <= times) exchange.sendRefusal(told)
        else exchange.sendJson(200, JSON.stringify({ type: 'message', content: [] }))
      },
    }
    const server = makeHttpServer([route], {
      basePath: '',
      headersTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      idleTimeoutMs: 1_000,
      connectionsMax: 100,
      makeRequestId: () => 'req_1',
      errorsUnder: { '/v1/messages': ANTHROPIC_ERRORS },
      onFault: (_where, error) => {
        throw error
      },
    })
    const address = await listen(server, { host: '127.0.0.1', port: 0 })
    const client = new Anthropic({ baseURL: address, apiKey: 'any', maxRetries: 2 })
    const patience = { answersEnded: Promise.resolve(), patienceEnded: Promise.resolve() }
    return { client, seen, close: () => closeServer(server, patience) }
  }

  it.each([
    ['concurrency-limit', 429, 'rate_limit_error', RateLimitError],
    ['queue-full', 529, 'overloaded_error', InternalServerError],
  ] as const)(
    'come after %s (%i) when retry-after-ms says so, and end in the right class',
    async (code, status, type, kind) => {
      const told: Refusal = { code, because: 'Full.', blame: 'tenant', retryAfterUs: 60_000 }
      const { client, seen, close } = await refusing(2, told)
      const timers = vi.spyOn(globalThis, 'setTimeout')
      await client.messages.create(ask)
      const waitsMs = timers.mock.calls.map(([, ms]) => ms)
      timers.mockRestore()
      expect(seen.asked).toBe(3)
      // On its own the SDK would wait at least 375 ms.
      expect(waitsMs.filter((ms) => ms === 60)).toHaveLength(2)
      seen.asked = -10
      const error = await refusal(client.messages.create(ask))
      expect(error).toBeInstanceOf(kind)
      expect(error).toMatchObject({ status, type })
      expect(error.headers?.get('retry-after')).toBe('1')
      await close()
    },
  )

  it('do not come when they are not worth it', async () => {
    const told: Refusal = { code: 'budget-exhausted', because: 'Over.', blame: 'tenant', retryAfterUs: undefined }
    const { client, seen, close } = await refusing(9, told)
    expect(await refusal(client.messages.create(ask))).toBeInstanceOf(RateLimitError)
    expect(seen.asked).toBe(1)
    await close()
  })
})

describe('a key in x-api-key', () => {
  it('is charged and bounded as in any other header', async () => {
    const allowance = { requests: { perMinute: 1, burst: 2 } }
    const acme = { id: 'acme', slo: 'patient', allowance, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }
    const limited = await startPlatform(testTree({ tenants: [acme] }))
    const client = new Anthropic({ baseURL: limited.address, apiKey: ACME_KEY, maxRetries: 0 })
    const { response } = await client.messages.create(ask).withResponse()
    expect(response.headers.get('anthropic-ratelimit-requests-limit')).toBe('2')
    expect(response.headers.get('anthropic-ratelimit-requests-remaining')).toBe('1')
    expect(Date.parse(response.headers.get('anthropic-ratelimit-requests-reset')!)).toBeGreaterThan(Date.now() - 60_000)
    await postJson(`${limited.baseURL}/chat/completions`, { ...ask })
    const error = await refusal(client.messages.create(ask))
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    await limited.close()
  })

  it('does not stand in for another key in front of it', async () => {
    const both = { ...authorization('sk-nobody'), 'x-api-key': ACME_KEY }
    expect((await postJson(`${platform.address}/v1/messages`, ask, both)).status).toBe(401)
  })
})
