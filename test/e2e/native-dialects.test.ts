import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, FakeUpstream, fails } from '../support/fake-upstream.ts'
import {
  type Event,
  eventsIn,
  messageOf,
  messagesEvents,
  responseOf,
  responsesEvents,
  speaks,
  stalls,
} from '../support/native-engine.ts'
import {
  ACME_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** Engines that speak Responses and Messages themselves get the client's body, and are passed on in their own events. */
const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const WORDS = ['The water ', 'is ', 'high.']
const DIALECTS = ['responses', 'messages'] as const
type Dialect = (typeof DIALECTS)[number]

const EVENTS: Readonly<Record<Dialect, Event[]>> = {
  responses: responsesEvents(WORDS),
  messages: messagesEvents(WORDS),
}
const DOCUMENTS: Readonly<Record<Dialect, object>> = {
  responses: responseOf('completed', WORDS),
  messages: messageOf(WORDS),
}
const OBJECT_IN: Readonly<Record<Dialect, string>> = { responses: 'response', messages: 'message' }
const native = (dialect: Dialect): Behaviour => speaks(EVENTS[dialect], DOCUMENTS[dialect])

const ASKS: Readonly<Record<Dialect, Tree>> = {
  responses: { model: MODEL, input: 'How high is the water?', max_output_tokens: 50, store: false },
  messages: { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'How high is the water?' }] },
}

const pool = (urls: readonly string[], dialects: readonly Dialect[], more: Tree = {}): Tree => ({
  model: MODEL,
  backend: { kind: 'http-openai', timeoutMs: 5_000, upstreamModel: 'engine-model', dialects, ...more },
  replicas: urls,
  limit: { kind: 'fixed', concurrencyMax: 64 },
})

interface World {
  readonly upstream: FakeUpstream
  readonly platform: TestPlatform
}

async function start(behaviour: Behaviour, overrides: Tree = {}): Promise<World> {
  const upstream = await FakeUpstream.start(behaviour)
  open.push(upstream)
  const pools = [pool([upstream.url], DIALECTS)]
  const platform = await startPlatform(upstreamTree([upstream.url], { pools, ...overrides }))
  open.push(platform)
  return { upstream, platform }
}

const post = ({ platform }: World, dialect: Dialect, more: Tree = {}): Promise<Response> =>
  postJson(`${platform.baseURL}/${dialect}`, { ...ASKS[dialect], ...more })

/** What the engine sent, with what is ours in place of its own. */
const owned = (dialect: Dialect, event: Event, id: unknown): object => {
  const object = event[OBJECT_IN[dialect]]
  return object === undefined ? event : { ...event, [OBJECT_IN[dialect]]: { ...(object as object), id, model: MODEL } }
}

describe.each(DIALECTS)('an engine that speaks %s', (dialect) => {
  it('gets the body as the client wrote it, but for what is ours', async () => {
    const world = await start(native(dialect))
    const more = { temperature: 1, engine_option: { deep: [1, '\u00e9'] }, spillway: {}, priority: 3 }
    expect((await post(world, dialect, more)).status).toBe(200)
    const { spillway: _, priority: __, ...rest } = { ...ASKS[dialect], ...more }
    expect(world.upstream.seen.map(({ path, body }) => ({ path, body }))).toEqual([
      { path: `/v1/${dialect}`, body: { ...rest, model: 'engine-model' } },
    ])
  })

  it('is passed on event by event; only id and model differ', async () => {
    const world = await start(native(dialect))
    const got = eventsIn(await (await post(world, dialect, { stream: true })).text())
    const { id } = (got[0] as Event)[OBJECT_IN[dialect]] as { id: string }
    expect(id).toMatch(dialect === 'responses' ? /^resp_(?!engine)/ : /^msg_(?!engine)/)
    expect(got).toEqual(EVENTS[dialect].map((event) => owned(dialect, event, id)))
  })

  it('is passed on in one piece; only id and model differ', async () => {
    const world = await start(native(dialect))
    const got = (await (await post(world, dialect)).json()) as { id: string }
    expect(got.id).not.toContain('engine')
    expect(got).toEqual({ ...DOCUMENTS[dialect], id: got.id, model: MODEL })
  })

  it.each([true, false])('is counted, stream %s', async (stream) => {
    const world = await start(native(dialect))
    const response = await post(world, dialect, { stream })
    await response.text()
    const settled = await world.platform.settled(response.headers.get('x-request-id') ?? '')
    const promptTokens = dialect === 'responses' ? 11 : 13
    expect(settled).toMatchObject({
      outcome: 'completed',
      usage: { promptTokens, cachedTokens: 4, outputTokens: 3 },
    })
  })

  it('is freed when the client leaves', async () => {
    const world = await start(stalls(EVENTS[dialect].slice(0, -3)))
    const leaving = new AbortController()
    const response = await fetch(`${world.platform.baseURL}/${dialect}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ACME_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...ASKS[dialect], stream: true }),
      signal: leaving.signal,
    })
    await response.body?.getReader().read()
    expect(world.upstream.openAnswers).toBe(1)
    leaving.abort()
    await eventually('the engine is free', () => world.upstream.openAnswers === 0)
  })

  it('breaks off before its first token: a replica that speaks only chat answers, translated', async () => {
    const world = await start(native(dialect))
    const chat = await FakeUpstream.start(answers())
    open.push(chat)
    const head = EVENTS[dialect].slice(0, 2)
    world.upstream.behaviour = speaks(head, {})
    const pools = [pool([world.upstream.url], DIALECTS), { ...pool([chat.url], []), id: 'chat-only' }]
    const platform = await startPlatform(upstreamTree([], { pools }))
    open.push(platform)
    for (let n = 0; n < 4; n++) {
      const text = await (await post({ ...world, platform }, dialect, { stream: true })).text()
      expect(text).toContain('weir')
      expect(text).not.toContain('engine')
    }
    expect(world.upstream.seen.map(({ path }) => path)).toContain(`/v1/${dialect}`)
    expect(new Set(chat.seen.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']))
  })

  it('breaks off in the middle: the client is told', async () => {
    const world = await start(speaks(EVENTS[dialect].slice(0, -4), {}))
    const got = eventsIn(await (await post(world, dialect, { stream: true })).text())
    expect(got.map(({ type }) => type)).toContain('error')
    expect(got.at(-1)?.type).toBe(dialect === 'responses' ? 'response.failed' : 'error')
  })

  it('says too much: the answer ends at its bound, and the engine is let go', async () => {
    const words = Array.from({ length: 200 }, (_, n) => `word ${n} `)
    const events = dialect === 'responses' ? responsesEvents(words) : messagesEvents(words)
    const world = await start(stalls(events.slice(0, -3)))
    const bound = dialect === 'responses' ? 'max_output_tokens' : 'max_tokens'
    const got = eventsIn(await (await post(world, dialect, { stream: true, [bound]: 20 })).text())
    expect(got.at(-1)?.type).toBe(dialect === 'responses' ? 'response.incomplete' : 'message_stop')
    expect(got.filter(({ type }) => type.endsWith('delta')).length).toBeLessThanOrEqual(22)
    await eventually('the engine is free', () => world.upstream.openAnswers === 0)
  })

  it('is asked for a chat where it is not said to speak the dialect', async () => {
    const world = await start(answers(), {})
    const platform = await startPlatform(upstreamTree([world.upstream.url]))
    open.push(platform)
    await (await post({ ...world, platform }, dialect)).text()
    expect(world.upstream.seen.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
  })

  it('says that the request is wrong: its words, in the shape of the dialect', async () => {
    const error = { type: 'invalid_request_error', message: 'No such knob.' }
    const world = await start(fails(400, dialect === 'messages' ? { type: 'error', error } : { error }))
    const response = await post(world, dialect)
    expect(response.status).toBe(400)
    const told = (await response.json()) as Event
    expect(told).toMatchObject({ error })
    expect(told.type).toBe(dialect === 'messages' ? 'error' : undefined)
  })
})

it('no event is left out, however many come before the first token, nor for what they repeat of the request', async () => {
  const instructions = 'Watch the dam. '.repeat(8_000)
  const events = responsesEvents(WORDS, 300, { instructions })
  const world = await start(speaks(events, {}))
  const more = { stream: true, instructions, max_output_tokens: 5 }
  const got = eventsIn(await (await post(world, 'responses', more)).text())
  expect(got.map(({ type }) => type)).toEqual(events.map(({ type }) => type))
})

it('an engine that sends events for ever is let go', async () => {
  const world = await start(stalls(responsesEvents(WORDS, 6_000).slice(0, 5_000)))
  const text = await (await post(world, 'responses', { stream: true, max_output_tokens: 5 })).text()
  expect(eventsIn(text).at(-1)?.type).toBe('response.failed')
  await eventually('the engine is free', () => world.upstream.openAnswers === 0)
})

it("OpenAI's client reads a stream of a native engine", async () => {
  const { platform } = await start(native('responses'))
  const openai = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  const stream = openai.responses.stream({ model: MODEL, input: 'How high?', store: false })
  const response = await stream.finalResponse()
  expect(response.output_text).toBe(WORDS.join(''))
  expect(response.model).toBe(MODEL)
})

it("Anthropic's client reads a stream of a native engine", async () => {
  const { platform } = await start(native('messages'))
  const claude = new Anthropic({ baseURL: platform.address, apiKey: ACME_KEY, maxRetries: 0 })
  const asked = { model: MODEL, max_tokens: 50, messages: [{ role: 'user' as const, content: 'How high?' }] }
  const message = await claude.messages.stream(asked).finalMessage()
  expect(message.content).toMatchObject([{ type: 'text', text: WORDS.join('') }])
  expect(message.usage).toMatchObject({ output_tokens: 3, cache_read_input_tokens: 4 })
})
