import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cpuMsOf } from '../support/cpu-time.ts'
import { eventually } from '../support/eventually.ts'
import { checked } from '../support/openai-shapes.ts'
import { type RawRequest, RawSocket, sendRaw } from '../support/raw-http.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Everything a client can get wrong: always a 4xx in OpenAI's shape, with the parameter named where there is one. */

const BODY_BYTES_MAX = 100_000
const messages = [{ role: 'user', content: 'Hello. How are you?' }]
const chat = { model: MODEL, messages, max_tokens: 1 }
const completion = { model: MODEL, prompt: 'Hello.', max_tokens: 1 }

let platform: TestPlatform

beforeAll(async () => {
  const server = { bodyBytesMax: BODY_BYTES_MAX }
  // With one model alone, a request that names none would mean it.
  const models = [{ name: MODEL, aliases: ['gpt-4o-mini'] }, { name: 'other' }]
  const backend = { kind: 'simulated', profile: 'h100-llama-8b' }
  const pools = models.map(({ name }) => ({ model: name, backend }))
  platform = await startPlatform(testTree({ server, models, pools }))
})
afterAll(() => platform.close())

const CHAT = '/v1/chat/completions'
const JSON_HEADERS = { 'content-type': 'application/json', ...authorization() }

interface ErrorBody {
  readonly error: { message: string; type: string; param: string | null; code: string | null }
}

async function refusalOf(raw: RawRequest): Promise<{ status: number } & ErrorBody['error']> {
  const { status, headers, text } = await sendRaw(platform.address, raw)
  expect(headers['content-type']).toMatch(/^application\/json/)
  expect(headers['x-request-id']).toMatch(/^req_/)
  const body = checked('error', JSON.parse(text) as ErrorBody)
  return { status, ...body.error }
}

const postTo = (path: string, body: unknown): RawRequest => ({
  path,
  headers: JSON_HEADERS,
  body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
})

describe('a parameter is wrong', () => {
  const cases: ReadonlyArray<readonly [param: string, body: unknown, status?: number, code?: string]> = [
    ['model', { messages }, 400, 'missing_required_parameter'],
    ['model', { ...chat, model: 7 }],
    ['model', { ...chat, model: '' }],
    ['model', { ...chat, model: 'gpt-17' }, 404, 'model_not_found'],
    ['messages', { model: MODEL }, 400, 'missing_required_parameter'],
    ['messages', { ...chat, messages: [] }, 400, 'empty_array'],
    ['messages', { ...chat, messages: 'hello' }, 400, 'invalid_type'],
    ['messages[0]', { ...chat, messages: ['hello'] }],
    ['messages[0].role', { ...chat, messages: [{ content: 'hi' }] }],
    ['messages[0].role', { ...chat, messages: [{ role: 'king', content: 'hi' }] }],
    ['messages[1].role', { ...chat, messages: [...messages, { role: 9, content: 'hi' }] }],
    ['messages[0].content', { ...chat, messages: [{ role: 'user', content: 5 }] }],
    ['messages[0].content[1].type', { ...chat, messages: [{ role: 'user', content: [{ type: 'text' }, {}] }] }],
    ['n', { ...chat, n: 129 }, 400, 'integer_above_max_value'],
    ['n', { ...chat, n: 0 }],
    ['n', { ...chat, n: 1.5 }],
    ['n', { ...chat, n: '2' }, 400, 'invalid_type'],
    ['max_tokens', { ...chat, max_tokens: -1 }],
    ['max_tokens', { ...chat, max_tokens: 'many' }, 400, 'invalid_type'],
    ['max_completion_tokens', { ...chat, max_completion_tokens: -1 }],
    ['temperature', { ...chat, temperature: 3 }],
    ['temperature', { ...chat, temperature: 'hot' }, 400, 'invalid_type'],
    ['top_p', { ...chat, top_p: -0.1 }],
    ['stream', { ...chat, stream: 'yes' }, 400, 'invalid_type'],
    ['stream_options', { ...chat, stream: true, stream_options: 1 }],
    ['stream_options.include_usage', { ...chat, stream: true, stream_options: { include_usage: 'yes' } }],
    ['stop', { ...chat, stop: 5 }],
    ['stop', { ...chat, stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['stop[1]', { ...chat, stop: ['a', 5] }],
    ['seed', { ...chat, seed: 'x' }],
    ['tools', { ...chat, tools: 'hammer' }],
    ['tools[0].type', { ...chat, tools: [{}] }],
    ['logprobs', { ...chat, logprobs: 3 }],
    ['top_logprobs', { ...chat, top_logprobs: 21 }],
    ['tool_choice', { ...chat, tool_choice: 'required' }, 400, 'unsupported_parameter'],
    [
      'tool_choice',
      { ...chat, tool_choice: { type: 'function', function: { name: 'f' } } },
      400,
      'unsupported_parameter',
    ],
    [
      'response_format',
      { ...chat, response_format: { type: 'json_schema', json_schema: {} } },
      400,
      'unsupported_parameter',
    ],
    ['response_format.type', { ...chat, response_format: {} }],
    ['spillway.deadline_ms', { ...chat, spillway: { deadline_ms: -5 } }],
    ['spillway.band', { ...chat, spillway: { band: 'royal' } }],
  ]
  it.each(cases)('%s in %j', async (param, body, status = 400, code) => {
    const refusal = await refusalOf(postTo(CHAT, body))
    expect(refusal).toMatchObject({ status, param, type: 'invalid_request_error' })
    expect(refusal.message).toContain(status === 404 ? 'gpt-17' : param)
    expect(refusal.code).toBe(code ?? refusal.code)
  })

  it.each([
    ['prompt', { model: MODEL }],
    ['prompt', { ...completion, prompt: 5 }],
    ['prompt', { ...completion, prompt: [] }],
    ['prompt', { ...completion, prompt: Array.from({ length: 129 }, () => 'hi') }],
    ['logprobs', { ...completion, logprobs: 2.5 }],
    ['logprobs', { ...completion, logprobs: 6 }],
    ['model', { ...completion, model: null }],
  ] as const)('%s of a completion in %j', async (param, body) => {
    expect(await refusalOf(postTo('/v1/completions', body))).toMatchObject({ status: 400, param })
  })
})

describe('the body is wrong', () => {
  it.each([
    ['no JSON', '{"model": ', 'invalid_json'],
    ['nothing', '', 'invalid_json'],
    ['an array', '[]', null],
    ['a number', '7', null],
    ['null', 'null', null],
    ['no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), 'invalid_encoding'],
  ])('%s', async (_what, body, code) => {
    expect(await refusalOf(postTo(CHAT, body))).toMatchObject({ status: 400, param: null, code })
  })

  it('does not quote the body back: it may end up in a log', async () => {
    const { message } = await refusalOf(postTo(CHAT, '{"model": "x", "messages": my secret'))
    expect(message).toContain('not valid JSON')
    expect(message).not.toContain('secret')
  })

  it.each(['text/plain', 'multipart/form-data; boundary=x', undefined])('content type %s', async (type) => {
    const headers = { ...authorization(), ...(type === undefined ? {} : { 'content-type': type }) }
    const refusal = await refusalOf({ path: CHAT, headers, body: JSON.stringify(chat) })
    expect(refusal).toMatchObject({ status: 415, code: 'unsupported_content_type' })
  })

  it('content encoding', async () => {
    const headers = { ...JSON_HEADERS, 'content-encoding': 'gzip' }
    expect(await refusalOf({ path: CHAT, headers, body: 'x' })).toMatchObject({ status: 415 })
  })

  const large = JSON.stringify({ ...chat, messages: [{ role: 'user', content: 'x'.repeat(40 * BODY_BYTES_MAX) }] })

  it('over the limit, announced', async () => {
    for (let i = 0; i < 5; i++) {
      const refusal = await refusalOf(postTo(CHAT, large))
      expect(refusal).toMatchObject({ status: 413, code: 'request_too_large' })
      expect(refusal.message).toContain(String(BODY_BYTES_MAX))
    }
  })

  it('over the limit, chunked', async () => {
    const pieces = Array.from({ length: 40 }, (_, i) => large.slice(i * BODY_BYTES_MAX, (i + 1) * BODY_BYTES_MAX))
    for (let i = 0; i < 5; i++) {
      expect(await refusalOf({ path: CHAT, headers: JSON_HEADERS, body: pieces })).toMatchObject({ status: 413 })
    }
  })

  it('over the limit, from a client that reads nothing until it has sent everything', async () => {
    const socket = new RawSocket(platform.address)
    socket.socket.pause()
    const key = authorization()['authorization']
    const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${key}\r\n`
    for (let i = 1; i <= 2; i++) {
      await new Promise<void>((resolve, reject) => {
        socket.socket.once('error', reject)
        socket.socket.write(`${head}content-length: ${Buffer.byteLength(large)}\r\n\r\n${large}`, () => resolve())
      })
      socket.socket.resume()
      // The connection can be used again: its next bytes are a request.
      await eventually('the answer', () => socket.received.split('HTTP/1.1 413 ').length === i + 1)
      socket.socket.pause()
      expect(socket.isClosed).toBe(false)
    }
    socket.socket.destroy()
  })

  it('over the limit, sent by the SDK', async () => {
    const ai = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const content = 'x'.repeat(40 * BODY_BYTES_MAX)
    for (let i = 0; i < 5; i++) {
      const asked = ai.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content }] })
      await expect(asked).rejects.toMatchObject({ status: 413, code: 'request_too_large' })
    }
  })

  it('over the limit without end: the connection is closed', async () => {
    const socket = new RawSocket(platform.address)
    const key = authorization()['authorization']
    socket.send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${key}\r\ncontent-length: 1000000000\r\n\r\n`,
    )
    await socket.closed()
    expect(socket.received).toMatch(/^HTTP\/1.1 413 /)
  })

  it('a body just under the limit is fine, and one long word does not stop the process', async () => {
    const overhead = JSON.stringify({ ...chat, messages: [{ role: 'user', content: '' }] }).length
    const content = 'x'.repeat(BODY_BYTES_MAX - overhead)
    const body = { ...chat, messages: [{ role: 'user', content }] }
    const cpuMs = await cpuMsOf(async () => {
      expect((await sendRaw(platform.address, postTo(CHAT, body))).status).toBe(200)
    })
    expect(cpuMs).toBeLessThan(5_000)
  })
})

describe('what looks wrong and is not', () => {
  it.each([
    ['a bound of no tokens', '/v1/completions', { ...completion, max_tokens: 0 }],
    ['a bound of no tokens by its other name', CHAT, { ...chat, max_completion_tokens: 0 }],
    ['no best answer', '/v1/completions', { ...completion, best_of: 0 }],
    ['four stops', CHAT, { ...chat, stop: ['a', 'b', 'c', 'd'] }],
  ])('%s', async (_, path, body) => {
    expect((await sendRaw(platform.address, postTo(path, body))).status).toBe(200)
  })

  it('five stops are told how many are allowed', async () => {
    const refusal = await refusalOf(postTo(CHAT, { ...chat, stop: ['a', 'b', 'c', 'd', 'e'] }))
    expect(refusal).toMatchObject({ param: 'stop', message: "Invalid 'stop': at most 4 elements are allowed." })
  })
})

describe('the caller is wrong', () => {
  it.each([
    ['no key', undefined],
    ['a key nobody has', 'Bearer sk-nobody'],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['no token', 'Bearer'],
    ['two tokens', 'Bearer a b'],
    ['a token without end', `Bearer ${'x'.repeat(5_000)}`],
  ])('%s', async (_what, value) => {
    const headers = { 'content-type': 'application/json', ...(value === undefined ? {} : { authorization: value }) }
    const routes: RawRequest[] = [
      { path: CHAT, body: JSON.stringify(chat) },
      { path: '/v1/completions', body: JSON.stringify(completion) },
      { path: '/v1/models', method: 'GET' },
      { path: `/v1/models/${MODEL}`, method: 'GET' },
    ]
    for (const route of routes) {
      expect(await refusalOf({ ...route, headers })).toMatchObject({
        status: 401,
        code: 'invalid_api_key',
        param: null,
        message: expect.stringMatching(/Authorization: Bearer .*x-api-key: .*api-key: /),
      })
    }
  })
})

describe('the address is wrong', () => {
  it.each([
    ['POST', '/', 405],
    ['GET', '/v1', 404],
    ['POST', '/v1/embeddingz', 404],
    ['GET', '/v2/chat/completions', 404],
    ['GET', `/${'x'.repeat(3_000)}`, 404],
    ['GET', '/v1/completions', 405],
    ['DELETE', CHAT, 405],
    ['GET', '/v1/embeddings', 405],
    ['POST', '/v1/models', 405],
    ['DELETE', `/v1/models/${MODEL}`, 405],
    ['POST', '/health', 405],
  ])('%s %s', async (method, path, status) => {
    const refusal = await refusalOf({ method, path, headers: JSON_HEADERS })
    expect(refusal).toMatchObject({ status, param: null })
    expect(refusal.message.length).toBeLessThan(400)
  })

  it('says which methods would do', async () => {
    const allowed = async (method: string, path: string) =>
      (await sendRaw(platform.address, { method, path })).headers['allow']
    expect(await allowed('GET', '/v1/completions')).toBe('POST')
    expect(await allowed('DELETE', CHAT)).toBe('GET, POST')
  })

  it('bytes that are no HTTP get an answer in the same shape', async () => {
    const socket = new RawSocket(platform.address).send('HELLO\r\n\r\n')
    await socket.closed()
    expect(socket.received).toMatch(/^HTTP\/1.1 400 /)
    checked('error', JSON.parse(socket.received.slice(socket.received.indexOf('\r\n\r\n'))))
  })

  it('headers beyond measure get 431', async () => {
    const refusal = await sendRaw(platform.address, {
      method: 'GET',
      path: '/health',
      headers: { 'x-much': 'x'.repeat(100_000) },
    })
    expect(refusal.status).toBe(431)
    checked('error', JSON.parse(refusal.text))
  })
})

describe('nothing is wrong', () => {
  it.each([
    { unknown_parameter: { deep: [1, 2] }, another: null },
    {
      n: null,
      stop: null,
      stream: null,
      seed: null,
      tools: null,
      spillway: null,
      max_tokens: null,
      max_completion_tokens: 1,
    },
    { logprobs: false, top_logprobs: 0, tool_choice: 'none', response_format: { type: 'text' } },
    { tool_choice: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
    { service_tier: 'priority', priority: 3, user: 'u', metadata: {} },
    { spillway: { deadline_ms: 60_000, ttft_ms: 500, bid: 1e9, band: 'offline' } },
  ])('%j is accepted', async (more) => {
    const { status, text } = await sendRaw(platform.address, postTo(CHAT, { ...chat, ...more }))
    expect({ status, text }).toMatchObject({ status: 200 })
  })

  it('content types with parameters and suffixes are JSON too', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/vnd.api+json']) {
      const headers = { ...JSON_HEADERS, 'content-type': type }
      expect((await sendRaw(platform.address, { path: CHAT, headers, body: JSON.stringify(chat) })).status).toBe(200)
    }
  })
})

it('after all this nothing is left behind, and nothing was our fault', async () => {
  expect(platform.platform.liveCount).toBe(0)
  expect(platform.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
})
