import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  type Answer,
  answers,
  type Behaviour,
  dropsConnection,
  FakeUpstream,
  fails,
  sends,
  WORDS,
} from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import { framesIn, textIn } from '../support/sse-frames.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** Engines differ, and break: what reaches the client has one shape all the same. */

const SECRET = 'the answer that nobody may log'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }

let upstream: FakeUpstream
let platform: TestPlatform

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  platform = await startPlatform(upstreamTree([upstream.url]))
})
afterAll(async () => {
  await platform.close()
  await upstream.close()
})

const ask = (body: object, path = '/chat/completions') => postJson(platform.baseURL + path, body)

async function outcomeOf(behaviours: readonly Behaviour[], body: object = chat) {
  upstream.next(...behaviours)
  const response = await ask(body)
  const text = await response.text()
  const settled = await platform.settled(response.headers.get('x-request-id')!)
  return { response, text, settled }
}

describe('streams arrive whole and in order', () => {
  const ways: ReadonlyArray<readonly [string, Answer]> = [
    ['as they should be', {}],
    ['with CRLF', { lineEnd: '\r\n' }],
    ['with CR', { lineEnd: '\r' }],
    ['byte by byte', { pieceBytes: 1 }],
    ['split anywhere, with comments', { pieceBytes: 7, hasComments: true, lineEnd: '\r\n' }],
    ['without usage', { hasUsage: false }],
    ['without [DONE]', { hasDone: false }],
    ['without a finish reason', { finishReason: null }],
    ['slowly', { everyMs: 3 }],
  ]
  it.each(ways)('%s', async (_how, answer) => {
    const body = { ...chat, n: 2, stream: true, stream_options: { include_usage: true } }
    const { text, settled } = await outcomeOf([answers(answer)], body)
    const frames = framesIn(text)
    for (const index of [0, 1]) expect(textIn(frames, index)).toBe(WORDS.join(''))
    for (const frame of frames) checked('chatChunk', frame)
    const roles = frames.flatMap((frame) => frame.choices ?? []).map((choice) => choice.delta?.role)
    expect(roles.filter(Boolean)).toHaveLength(2)
    expect(frames.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 2 * WORDS.length } })
    expect(settled).toMatchObject({ outcome: 'completed', usage: { outputTokens: 2 * WORDS.length } })
  })

  it('as completions', async () => {
    upstream.next(answers({ pieceBytes: 5 }))
    const response = await ask({ model: MODEL, prompt: 'Hello?', stream: true }, '/completions')
    const frames = framesIn(await response.text())
    for (const frame of frames) checked('completionChunk', frame)
    expect(textIn(frames)).toBe(WORDS.join(''))
  })

  it('from an engine that ignores `stream` and answers whole', async () => {
    const whole = JSON.stringify({
      choices: [{ index: 0, message: { content: 'All at once.' }, finish_reason: 'stop' }],
    })
    const { text } = await outcomeOf([fails(200, whole)], { ...chat, stream: true })
    expect(textIn(framesIn(text))).toBe('All at once.')
  })

  it('with what we do not know passed on: tool calls, reasoning, log probabilities', async () => {
    const frame = (choice: object) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    upstream.next(
      sends(
        frame({ delta: { role: 'assistant', reasoning_content: 'Hm.' } }),
        frame({ delta: { tool_calls: [call] }, logprobs: { content: [] } }),
        frame({ delta: {}, finish_reason: 'tool_calls' }),
        'data: [DONE]\n\n',
      ),
    )
    const frames = framesIn(await (await ask({ ...chat, stream: true })).text())
    expect(frames.map((one) => one.choices![0])).toMatchObject([
      { delta: { role: 'assistant', reasoning_content: 'Hm.' } },
      { delta: { tool_calls: [call] }, logprobs: { content: [] } },
      { delta: {}, finish_reason: 'tool_calls' },
    ])
  })
})

describe('what the engine is asked', () => {
  it('is what the client asked, in its own names, with usage always on and ours left out', async () => {
    const body = {
      ...chat,
      temperature: 0.5,
      stream: true,
      max_tokens: 7,
      spillway: { bid: 1 },
      priority: 3,
      custom: [1],
    }
    await (await ask(body)).text()
    const seen = upstream.seen.at(-1)!
    expect(seen.path).toBe('/v1/chat/completions')
    expect(seen.body).toEqual({
      ...chat,
      temperature: 0.5,
      stream: true,
      max_tokens: 7,
      custom: [1],
      stream_options: { include_usage: true },
    })
    expect(seen.headers['authorization']).toBeUndefined()
    expect(seen.headers['x-request-id']).toMatch(/^req_/)
  })

  it('has no bound that nobody set', async () => {
    await (await ask(chat)).text()
    expect(upstream.seen.at(-1)!.body).toEqual(chat)
  })

  it('has what the client says of tiers and streams, known or not', async () => {
    const body = { ...chat, service_tier: 'flex', stream: true, stream_options: { include_obfuscation: false } }
    await (await ask(body)).text()
    const stream_options = { include_obfuscation: false, include_usage: true }
    expect(upstream.seen.at(-1)!.body).toEqual({ ...body, stream_options })
  })

  it('is the same again after a 500', async () => {
    const seenBefore = upstream.seen.length
    const body = { ...chat, max_tokens: 2_000, tools: [{ type: 'function', function: { name: 'f' } }], stream: true }
    const { response } = await outcomeOf([fails(500, {}), answers()], body)
    expect(response.status).toBe(200)
    const [first, second, ...more] = upstream.seen.slice(seenBefore)
    expect(more).toEqual([])
    expect(second?.text).toBe(first?.text)
    expect(second?.body).toEqual({ ...body, stream_options: { include_usage: true } })
  })

  it('is the only model where the client names none', async () => {
    const { model: _model, ...nameless } = chat
    const answer = (await (await ask(nameless)).json()) as { model: string }
    expect(upstream.seen.at(-1)!.body).toEqual(chat)
    expect(answer.model).toBe(MODEL)
  })
})

describe('an engine that breaks before the first token', () => {
  const broken: ReadonlyArray<readonly [string, Behaviour]> = [
    ['drops the connection', dropsConnection],
    ['answers 500', fails(500, { error: { message: SECRET } })],
    ['answers with a page of some proxy', fails(502, '<html>Bad gateway</html>', { 'content-type': 'text/html' })],
    ['sends no JSON', fails(200, `not json: ${SECRET}`)],
    ['sends an answer without choices', fails(200, {})],
    ['ends its stream before it began', sends('data: [DONE]\n\n')],
    ['closes its stream in the middle of nothing', sends('data: {"choices":[]}\n\n')],
    ['streams an error', sends(`data: {"error":{"message":"${SECRET}"}}\n\n`)],
    ['streams what is no JSON', sends(`data: {"choices": ${SECRET}\n\n`)],
    [
      'streams nonsense of the right shape',
      sends('data: {"choices":[null,5,{"index":1e9,"delta":7}]}\n\ndata: [DONE]\n\n'),
    ],
  ]
  it.each(broken)('%s: the second try answers', async (_what, behaviour) => {
    for (const stream of [false, true]) {
      const { response, settled } = await outcomeOf([behaviour, answers()], { ...chat, stream })
      expect(response.status).toBe(200)
      expect(settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    }
  })

  it.each(broken)('%s twice: an error before the headers, with a time to come back', async (_what, behaviour) => {
    const { response, text, settled } = await outcomeOf([behaviour, behaviour], { ...chat, stream: true })
    expect([502, 503]).toContain(response.status)
    checked('error', JSON.parse(text))
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 2 })
  })

  const full: ReadonlyArray<readonly [string, Behaviour]> = [
    ['is full', fails(503, { error: SECRET }, { 'retry-after-ms': '120' })],
    ['has its own rate limit', fails(429, { object: 'error', message: SECRET }, { 'retry-after': '0.12' })],
  ]
  it.each(full)('%s: the second try comes after the time that the engine says', async (_what, behaviour) => {
    for (const stream of [false, true]) {
      const at: number[] = []
      const noted =
        (then: Behaviour): Behaviour =>
        (call) => {
          at.push(performance.now())
          return then(call)
        }
      const { response, settled } = await outcomeOf([noted(behaviour), noted(answers())], { ...chat, stream })
      expect(response.status).toBe(200)
      expect(settled).toMatchObject({ outcome: 'completed', attempts: 2 })
      // Timers may fire a millisecond early by this clock.
      expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(118)
    }
  })

  it.each(full)(
    '%s again and again: an error before the headers, with a time to come back',
    async (_what, behaviour) => {
      const tries = Array.from({ length: 4 }, () => behaviour)
      const { response, text, settled } = await outcomeOf(tries, { ...chat, stream: true })
      expect(response.status).toBe(503)
      checked('error', JSON.parse(text))
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(settled).toMatchObject({ outcome: 'failed', attempts: 4 })
    },
  )

  it('is full for longer than the request has time: told at once, with the engine’s own time', async () => {
    const body = { ...chat, spillway: { deadline_ms: 6_000 } }
    const { response, settled } = await outcomeOf([fails(503, {}, { 'retry-after': '7' })], body)
    expect(response.headers.get('retry-after')).toBe('7')
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 1 })
  })

  const denying: ReadonlyArray<readonly [string, Behaviour]> = [
    ['does not know our key', fails(401, { error: { message: SECRET } })],
    ['forbids', fails(403, { error: { message: SECRET } })],
    ['has no such model', fails(404, { detail: SECRET })],
    ['has used up its quota', fails(429, { error: { code: 'insufficient_quota' } }, { 'retry-after': '7' })],
  ]
  it.each(denying)('%s: one attempt, and no promise to come back', async (_what, behaviour) => {
    const seenBefore = upstream.seen.length
    const { response, text, settled } = await outcomeOf([behaviour], { ...chat, stream: true })
    expect(response.status).toBe(502)
    expect(checked('error', JSON.parse(text))).toMatchObject({ error: { code: 'replica_denied' } })
    expect(response.headers.get('retry-after')).toBeNull()
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 1 })
    expect(upstream.seen).toHaveLength(seenBefore + 1)
    const ready = await fetch(`${platform.address}/health/ready`)
    expect(await ready.json()).toMatchObject({
      because: expect.stringMatching(/1 denied: The engine answered 4\d\d: /),
    })
  })

  it('denies: the operator is told once for each reason, until the engine answers again', async () => {
    await outcomeOf([answers()])
    const toldBefore = platform.entries.length
    await outcomeOf([fails(401, '')])
    await outcomeOf([fails(401, '')])
    await outcomeOf([answers()])
    const told = platform.entries.slice(toldBefore).filter((entry) => entry.kind === 'replica-denied')
    expect(told.map(({ isDenied }) => isDenied)).toEqual([true, false])
  })

  it('rejects the request itself: no second try, and its error is passed on as it is', async () => {
    const error = { message: 'top_k must be positive', type: 'invalid_request_error', param: 'top_k', code: 400 }
    const { response, text, settled } = await outcomeOf([fails(400, { error })])
    expect(response.status).toBe(400)
    expect(JSON.parse(text)).toEqual({ error })
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 1, refusal: { code: 'replica-rejected-request' } })
  })

  const rejecting: ReadonlyArray<readonly [string, number, object, object]> = [
    [
      'OpenAI, too long',
      400,
      {
        error: {
          message: 'Too long.',
          type: 'invalid_request_error',
          param: 'messages',
          code: 'context_length_exceeded',
        },
      },
      { message: 'Too long.', type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
    ],
    [
      'OpenAI, a parameter',
      400,
      { error: { message: 'No.', type: 'invalid_request_error', param: 'max_tokens', code: 'unsupported_parameter' } },
      { message: 'No.', type: 'invalid_request_error', param: 'max_tokens', code: 'unsupported_parameter' },
    ],
    [
      'Azure, with what its filter found',
      400,
      {
        error: { message: 'Filtered.', type: null, param: 'prompt', code: 'content_filter', innererror: { code: 'X' } },
      },
      { message: 'Filtered.', param: 'prompt', code: 'content_filter', innererror: { code: 'X' } },
    ],
    [
      'vLLM, too long',
      400,
      {
        error: {
          message: "This model's maximum context length is 9.",
          type: 'BadRequestError',
          param: null,
          code: 400,
        },
      },
      { type: 'BadRequestError', param: null, code: 'context_length_exceeded' },
    ],
    [
      'an older vLLM',
      400,
      { object: 'error', message: 'No.', type: 'BadRequestError', param: null, code: 400 },
      { message: 'No.', type: 'BadRequestError', param: null, code: 400 },
    ],
    [
      'FastAPI',
      422,
      { detail: [{ loc: ['body', 'messages', 0, 'role'], msg: 'Field required', type: 'missing' }] },
      { message: 'messages[0].role: Field required', type: 'invalid_request_error', param: 'messages[0].role' },
    ],
    [
      'a text',
      422,
      { error: 'Input validation error', error_type: 'validation' },
      { message: 'Input validation error' },
    ],
    ['nothing', 400, {}, { code: 'replica_rejected_request', type: 'invalid_request_error', param: null }],
    ['too large', 413, { error: { message: 'Big.', code: 'too_big' } }, { message: 'Big.', code: 'too_big' }],
    [
      'a type',
      415,
      { error: { message: 'Type.', type: 'x', code: null } },
      { message: 'Type.', type: 'x', code: null },
    ],
  ]
  it.each(rejecting)(
    'rejects the request itself, %s: status, code, type and param are kept',
    async (_, status, body, error) => {
      for (const stream of [false, true]) {
        const { response, text, settled } = await outcomeOf([fails(status, body)], { ...chat, stream })
        expect(response.status).toBe(status)
        expect(JSON.parse(text)).toMatchObject({ error })
        expect((JSON.parse(text) as { error: { message: string } }).error.message).not.toBe('')
        expect(settled).toMatchObject({ outcome: 'failed', attempts: 1 })
        expect(JSON.stringify(settled)).not.toMatch(/Too long|Filtered|Field required/)
      }
    },
  )
})

describe('an engine that breaks in the middle', () => {
  const first = 'data: {"choices":[{"index":0,"delta":{"content":"Well, "},"finish_reason":null}]}\n\n'
  const broken: ReadonlyArray<readonly [string, Behaviour]> = [
    ['drops the connection', answers({ breaksAfter: 2, everyMs: 5 })],
    ['closes early', sends(first)],
    ['streams an error', sends(first, `data: {"error":{"message":"${SECRET}"}}\n\n`)],
    ['streams what is no JSON', sends(first, `data: {"choices": ${SECRET}\n\n`)],
    ['streams a frame without end', sends(first, `data: ${'x'.repeat(2_000_000)}`)],
  ]
  it.each(broken)('%s: what was said stays said, then an error frame and [DONE]', async (_what, behaviour) => {
    const { response, text, settled } = await outcomeOf([behaviour], { ...chat, stream: true })
    expect(response.status).toBe(200)
    const frames = framesIn(text)
    expect(textIn(frames).length).toBeGreaterThan(3)
    checked('error', frames.at(-1))
    expect(frames.at(-1)!.error!.code).toBe('replica_lost')
    expect(settled).toMatchObject({ outcome: 'failed', attempts: 1 })
    expect(settled.usage.outputTokens).toBeGreaterThan(0)
    await eventually('its connection is given up', () => upstream.openAnswers === 0)
  })
})

it('nothing that an engine said about an error is in the journal: it may quote a prompt', () => {
  platform.journal.drain()
  expect(platform.entries.length).toBeGreaterThan(100)
  expect(JSON.stringify(platform.entries)).not.toContain(SECRET)
  expect(platform.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
})

it('a replica that reports itself unwell is not used until it is well again', async () => {
  const [sick, well] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()])
  sick.isHealthy = false
  const pair = await startPlatform(upstreamTree([sick.url, well.url]))
  for (let i = 0; i < 4; i++) expect((await postJson(`${pair.baseURL}/chat/completions`, chat)).status).toBe(200)
  expect([sick.seen.length, well.seen.length]).toEqual([0, 4])
  sick.isHealthy = true
  await eventually('it is ready', () => pair.platform.turnstile.view().readyReplicas === 2)
  await Promise.all([1, 2, 3, 4].map(() => postJson(`${pair.baseURL}/chat/completions`, chat)))
  expect(sick.seen.length).toBeGreaterThan(0)
  await pair.close()
  await Promise.all([sick.close(), well.close()])
})
