import Anthropic, { APIError, APIUserAbortError, InternalServerError } from '@anthropic-ai/sdk'
import { afterEach, describe, expect, it } from 'vitest'
import { anthropicChecked, eventsOf } from '../support/anthropic-shapes.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, FakeUpstream, fails, hangs } from '../support/fake-upstream.ts'
import { frame } from '../support/openai-call.ts'
import {
  ACME_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** Messages in front of engines that speak chat completions: what reaches the engine, and what comes back. */
const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

interface World {
  readonly upstream: FakeUpstream
  readonly platform: TestPlatform
  readonly claude: Anthropic
}

async function start(behaviour: Behaviour, overrides: Tree = {}, concurrencyMax = 64): Promise<World> {
  const upstream = await FakeUpstream.start(behaviour)
  open.push(upstream)
  const platform = await startPlatform(upstreamTree([upstream.url], overrides, concurrencyMax))
  open.push(platform)
  const claude = new Anthropic({ baseURL: platform.address, apiKey: ACME_KEY, maxRetries: 0 })
  return { upstream, platform, claude }
}

const ask = { model: MODEL, max_tokens: 50, messages: [{ role: 'user' as const, content: 'How high is the water?' }] }

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}): string =>
  frame({ id: 'up-1', choices: [{ index: 0, delta, finish_reason, ...more }] })
const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 6,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 3 },
}

/** Says these deltas: as a stream, or put together as one message by `message`. */
function says(frames: readonly string[], message: object, finish_reason: string, more: object = {}): Behaviour {
  return ({ body, res }) => {
    if (body['stream'] === true) {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const last = chunk({}, finish_reason, more) + frame({ id: 'up-1', choices: [], usage: USAGE })
      res.end(`${frames.join('')}${last}data: [DONE]\n\n`)
      return
    }
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason, ...more }]
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, usage: USAGE }))
  }
}

const call = (id: string, name: string, args: string) => ({ id, type: 'function', function: { name, arguments: args } })
const piece = (index: number, args: string) => ({ tool_calls: [{ index, function: { arguments: args } }] })

const usesTools = says(
  [
    chunk({ role: 'assistant', reasoning_content: 'I must ' }),
    chunk({ reasoning_content: 'look.' }),
    chunk({ content: 'I look.' }),
    chunk({ tool_calls: [{ index: 0, ...call('call_1', 'level', '') }] }),
    chunk(piece(0, '{"at": "d')),
    chunk(piece(0, 'am"}')),
    chunk({ tool_calls: [{ index: 1, ...call('call_2', 'look', '{}') }] }),
  ],
  {
    reasoning_content: 'I must look.',
    content: 'I look.',
    tool_calls: [call('call_1', 'level', '{"at": "dam"}'), call('call_2', 'look', '{}')],
  },
  'tool_calls',
)

const CONTENT = [
  { type: 'thinking', thinking: 'I must look.', signature: 'spillway.reasoning_content' },
  { type: 'text', text: 'I look.' },
  { type: 'tool_use', id: 'call_1', name: 'level', input: { at: 'dam' } },
  { type: 'tool_use', id: 'call_2', name: 'look', input: {} },
]

const tools = [
  { name: 'level', description: 'The level.', input_schema: { type: 'object' as const, properties: {} } },
  { name: 'look', input_schema: { type: 'object' as const } },
]

describe('tools', () => {
  it.each([false, true])('make a round trip, streamed: %s', async (isStreamed) => {
    const { upstream, claude } = await start(answers())
    upstream.next(usesTools)
    const body = { ...ask, tools, tool_choice: { type: 'any' as const, disable_parallel_tool_use: true } }
    const answer = isStreamed ? await claude.messages.stream(body).finalMessage() : await claude.messages.create(body)
    expect(answer).toMatchObject({
      content: CONTENT,
      stop_reason: 'tool_use',
      usage: {
        input_tokens: 7,
        cache_read_input_tokens: 4,
        cache_creation_input_tokens: 0,
        output_tokens: 6,
        output_tokens_details: { thinking_tokens: 3 },
      },
    })
    expect(upstream.seen[0]).toMatchObject({
      path: '/v1/chat/completions',
      body: {
        max_tokens: 50,
        tool_choice: 'required',
        parallel_tool_calls: false,
        tools: [
          { type: 'function', function: { name: 'level', description: 'The level.' } },
          { type: 'function', function: { name: 'look' } },
        ],
      },
    })
    const png = { type: 'base64' as const, media_type: 'image/png' as const, data: 'AAAA' }
    const results = [
      { type: 'tool_result' as const, tool_use_id: 'call_1', content: '12 m' },
      {
        type: 'tool_result' as const,
        tool_use_id: 'call_2',
        content: [{ type: 'image' as const, source: png }],
      },
    ]
    const again = [
      ...ask.messages,
      { role: 'assistant' as const, content: answer.content },
      { role: 'user' as const, content: results },
    ]
    const last = await claude.messages.create({ ...ask, tools, messages: again })
    expect(last.content).toEqual([{ type: 'text', text: 'The weir holds the wäter lëvel 🌊.' }])
    expect(upstream.seen[1]!.body['messages']).toEqual([
      { role: 'user', content: 'How high is the water?' },
      {
        role: 'assistant',
        content: 'I look.',
        reasoning_content: 'I must look.',
        tool_calls: [call('call_1', 'level', '{"at":"dam"}'), call('call_2', 'look', '{}')],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '12 m' },
      { role: 'tool', tool_call_id: 'call_2', content: '(What this tool shows follows in the next message.)' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Shown by the tool call call_2:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
    ])
  })
})

describe('ends', () => {
  it.each([
    ['stop', {}, 'end_turn', null],
    ['length', {}, 'max_tokens', null],
    ['content_filter', {}, 'refusal', null],
    ['stop', { stop_reason: 'END' }, 'stop_sequence', 'END'],
    ['stop', { stop_reason: 128_009 }, 'end_turn', null],
    ['stop', { matched_stop: 'END' }, 'stop_sequence', 'END'],
  ])('with %s %o as %s', async (finish, more, stop_reason, stop_sequence) => {
    const behaviour = says([chunk({ content: 'a' })], { content: 'a' }, finish, more)
    const { claude } = await start(behaviour)
    const body = { ...ask, stop_sequences: ['END'] }
    expect(await claude.messages.create(body)).toMatchObject({ stop_reason, stop_sequence })
    expect(await claude.messages.stream(body).finalMessage()).toMatchObject({ stop_reason, stop_sequence })
  })
})

describe('trouble', () => {
  it('before the answer: the platform is full, and a client is told when to come back', async () => {
    const { upstream, platform, claude } = await start(hangs, { queue: { requestsMax: 1 } }, 1)
    const abort = new AbortController()
    const held = [1, 2].map(() => claude.messages.create(ask, { signal: abort.signal }).catch((e: unknown) => e))
    await eventually('one runs and one waits', () => {
      const { waiting } = platform.platform.turnstile.view()
      return (upstream.openAnswers === 1 && waiting === 1) || undefined
    })
    for (const stream of [false, true]) {
      const error = await (claude.messages.create({ ...ask, stream }) as Promise<unknown>).catch((e: unknown) => e)
      expect(error).toBeInstanceOf(InternalServerError)
      expect(error).toMatchObject({ status: 529, type: 'overloaded_error' })
      expect(Number((error as APIError).headers?.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    abort.abort()
    await Promise.all(held)
    await eventually('the engine is free', () => upstream.openAnswers === 0 || undefined)
  })

  it('in the middle: the stream ends in an error event, which the SDK throws', async () => {
    const { platform, claude } = await start(answers({ everyMs: 1, breaksAfter: 3 }))
    const stream = claude.messages.stream(ask)
    const error = await stream.finalMessage().catch((e: unknown) => e)
    expect(error).toBeInstanceOf(APIError)
    expect(error).toMatchObject({ type: 'api_error' })
    const raw = await postJson(`${platform.baseURL}/messages`, { ...ask, stream: true })
    const events = eventsOf(await raw.text())
    expect(events.at(-1)!.name).toBe('error')
    expect(events.filter(({ name }) => name === 'message_stop')).toEqual([])
    expect((events.at(-1)!.data as { request_id: string }).request_id).toBe(raw.headers.get('request-id'))
  })

  it('while nothing comes: pings, before the message begins; the SDK skips them', async () => {
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const { platform } = await start(
      async (asked) => {
        await released
        await answers()(asked)
      },
      { server: { keepAliveMs: 20 } },
    )
    const raw = await postJson(`${platform.baseURL}/messages`, { ...ask, stream: true })
    const reader = raw.body!.getReader()
    const decoder = new TextDecoder()
    let text = ''
    while (!text.includes('\n\nevent: ping')) text += decoder.decode((await reader.read()).value, { stream: true })
    release()
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
    const names = eventsOf(text).map(({ name }) => name)
    expect(names.filter((name) => name === 'ping').length).toBeGreaterThanOrEqual(2)
    expect(names.find((name) => name !== 'ping')).toBe('message_start')
    expect(names.at(-1)).toBe('message_stop')
  })

  it('a client that goes frees the engine', async () => {
    const { upstream, claude } = await start(hangs)
    const abort = new AbortController()
    const failed = claude.messages.create({ ...ask, stream: true }, { signal: abort.signal }).catch((e: unknown) => e)
    await eventually('the engine is asked', () => upstream.openAnswers === 1 || undefined)
    abort.abort()
    expect(await failed).toBeInstanceOf(APIUserAbortError)
    await eventually('the engine is free', () => upstream.openAnswers === 0 || undefined)
  })

  it('an engine that refuses the request is quoted', async () => {
    const { claude } = await start(fails(400, { error: { message: 'No pictures here.', param: 'messages' } }))
    const error = (await claude.messages.create(ask).catch((e: unknown) => e)) as APIError
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    anthropicChecked('error', error.error)
    expect(error.message).toContain('No pictures here.')
  })
})
