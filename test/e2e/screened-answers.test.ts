import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { LeakingEngine } from '../support/leaking-engine.ts'
import {
  BARE_KEY,
  CANARY,
  FLAGGED_KEY,
  LEAK,
  OWN_KEY,
  SAID,
  type ScreenedPlatform,
  startScreened,
  WHOLE_KEY,
} from '../support/screened-platform.ts'
import { ACME_KEY, authorization, GLOBEX_KEY, postJson, type TestPlatform } from '../support/start-platform.ts'

/**
 * Answers on their way out, through real clients and an engine that cuts values over its deltas and says them in every
 * place that has text. `acme` redacts, `globex` blocks, `whole` holds all of it, `own` gets its own values back.
 */
let engine: LeakingEngine
let started: ScreenedPlatform
let platform: TestPlatform
const openai = (apiKey = ACME_KEY) => new OpenAI({ apiKey, baseURL: platform.baseURL, maxRetries: 0 })
const anthropic = (apiKey = ACME_KEY) =>
  new Anthropic({ apiKey, baseURL: platform.baseURL.replace(/\/v1$/, ''), maxRetries: 0 })

beforeAll(async () => {
  started = await startScreened()
  platform = started.platform
  engine = started.engine
}, 60_000)
afterAll(() => started?.close())
beforeEach(() => {
  engine.said = SAID
  engine.mood = 'well'
  engine.everyMs = 0
})

const messages = [{ role: 'user' as const, content: 'Hi.' }]
const chat = { model: 'sim', messages, max_tokens: 200 }

describe('values cut over deltas', () => {
  it('reach a client whose tenant has no screens, in the engine’s own frames', async () => {
    const whole = await postJson(`${platform.baseURL}/chat/completions`, chat, authorization(BARE_KEY))
    expect(await whole.text()).toMatch(CANARY)
    expect(whole.headers.get('x-spillway-dropped')).toBeNull()
  })

  it('are told of where they are only flagged: in the head of a whole answer, at the end of a stream', async () => {
    const whole = await postJson(`${platform.baseURL}/chat/completions`, chat, authorization(FLAGGED_KEY))
    expect(await whole.text()).toMatch(CANARY)
    expect(whole.headers.get('x-spillway-flagged')).toBe('pii')
    const asked = { ...chat, stream: true }
    const streamed = await postJson(`${platform.baseURL}/chat/completions`, asked, authorization(FLAGGED_KEY))
    expect(streamed.headers.get('x-spillway-flagged')).toBeNull()
    expect(await streamed.text()).toContain('"spillway":{"flagged":["pii"]}')
  })

  it('are in no chunk of a chat, nor in its calls', async () => {
    const { data, response } = await openai()
      .chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true }, logprobs: true })
      .withResponse()
    const args = ['', '']
    let content = ''
    let reasoning = ''
    let finish: string | null = null
    let total: number | undefined
    for await (const chunk of data) {
      expect(JSON.stringify(chunk)).not.toMatch(CANARY)
      const choice = chunk.choices[0]
      content += choice?.delta.content ?? ''
      reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
      for (const call of choice?.delta.tool_calls ?? []) args[call.index] += call.function?.arguments ?? ''
      finish = choice?.finish_reason ?? finish
      total = chunk.usage?.total_tokens ?? total
    }
    expect(content).toBe('I write to <EMAIL> now')
    expect(reasoning).toBe('They want me to write to <EMAIL>, so')
    expect(args.map((text) => JSON.parse(text) as unknown)).toEqual([
      { to: '<EMAIL>', '<EMAIL>': 'x', card: '<CARD>' },
      { to: '<EMAIL>' },
    ])
    expect(finish).toBe('tool_calls')
    expect(total).toBe(12)
    expect(response.headers.get('x-spillway-dropped')).toBe('leak, token_ids, logprobs')
  })

  it('are in no whole chat either, which says the same', async () => {
    const { data, response } = await openai().chat.completions.create(chat).withResponse()
    expect(JSON.stringify(data)).not.toMatch(CANARY)
    const [choice] = data.choices
    expect(choice).toMatchObject({ message: { content: 'I write to <EMAIL> now' }, finish_reason: 'tool_calls' })
    expect(choice?.message.tool_calls).toHaveLength(2)
    expect(data.usage?.total_tokens).toBe(12)
    expect(response.headers.get('x-spillway-dropped')).toContain('prompt_logprobs')
  })

  it.each(['sim', 'native'])('are in no response and no message, streamed or not (%s)', async (model) => {
    const ask = { model, input: 'Hi.' }
    const events: string[] = []
    for await (const event of await openai().responses.create({ ...ask, stream: true }))
      events.push(JSON.stringify(event))
    expect(events.join('')).not.toMatch(CANARY)
    expect(events.join('')).toContain('response.completed')
    const response = await openai().responses.create(ask)
    expect(JSON.stringify(response)).not.toMatch(CANARY)
    expect(response.output_text).toBe('I write to <EMAIL> now')
    const message = await anthropic().messages.stream({ model, max_tokens: 200, messages }).finalMessage()
    expect(JSON.stringify(message)).not.toMatch(CANARY)
    expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use', 'tool_use'])
    const whole = await anthropic().messages.create({ model, max_tokens: 200, messages })
    expect(whole.content.at(-1)).toMatchObject({ type: 'tool_use', input: { to: '<EMAIL>' } })
    expect(engine.paths.filter((path) => /responses|messages/.test(path))).toEqual([])
  })

  it('are in no echo of a completion', async () => {
    const completion = await openai().completions.create({ model: 'sim', prompt: 'Hi', echo: true, max_tokens: 50 })
    expect(completion.choices[0]?.text).toBe('I write to <EMAIL> now')
    let text = ''
    for await (const chunk of await openai().completions.create({
      model: 'sim',
      prompt: 'Hi',
      stream: true,
      max_tokens: 50,
    }))
      text += chunk.choices[0]?.text ?? ''
    expect(text).toBe('I write to <EMAIL> now')
  })
})

describe('an answer that is blocked', () => {
  it('ends with the finish reason of each dialect', async () => {
    engine.said = { content: `All is well. I write to ${LEAK} now, and more` }
    const client = openai(GLOBEX_KEY)
    const whole = await client.chat.completions.create(chat)
    expect(whole.choices[0]).toMatchObject({
      finish_reason: 'content_filter',
      message: { content: 'All is well. I write to ' },
    })
    let text = ''
    let finish: string | null | undefined
    let id = ''
    for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? ''
      finish = chunk.choices[0]?.finish_reason ?? finish
      id = chunk.id
    }
    expect({ text, finish }).toEqual({ text: 'All is well. I write to ', finish: 'content_filter' })
    const settled = await platform.settled(`req_${id.slice('chatcmpl-'.length)}`)
    expect(settled).toMatchObject({ outcome: 'blocked', refusal: { code: 'content-filter' } })
    expect(settled.usage.outputTokens).toBeGreaterThan(0)
    const completion = await client.completions.create({ model: 'sim', prompt: 'Hi', max_tokens: 50 })
    expect(completion.choices[0]?.finish_reason).toBe('content_filter')
    const response = await client.responses.create({ model: 'sim', input: 'Hi' })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
    const message = await anthropic(GLOBEX_KEY)
      .messages.stream({ model: 'sim', max_tokens: 50, messages })
      .finalMessage()
    expect(message.stop_reason).toBe('refusal')
    await eventually('the engine is let go', () => (engine.openCount === 0 ? true : undefined))
  })

  it('is a refusal where there is no place for one', async () => {
    const response = await postJson(
      `${platform.baseURL}/images/generations`,
      { model: 'picture', prompt: 'x' },
      authorization(GLOBEX_KEY),
    )
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe('content_filter')
    expect(error.message).not.toMatch(CANARY)
  })
})

describe('trouble in the middle of what is held', () => {
  it('an engine that is lost is replaced, and the client sees one answer', async () => {
    engine.mood = 'breaks-off'
    const texts: string[] = []
    for (let i = 0; i < 4; i++) {
      let text = ''
      for await (const chunk of await openai(WHOLE_KEY).chat.completions.create({
        ...chat,
        model: 'two',
        stream: true,
      }))
        text += chunk.choices[0]?.delta.content ?? ''
      texts.push(text)
    }
    expect(new Set(texts)).toEqual(new Set(['A second answer.']))
    expect(platform.entries.some((entry) => entry.kind === 'attempt-ended' && entry.ending === 'lost')).toBe(true)
  })

  it('a client that leaves frees everything', async () => {
    engine.mood = 'hangs'
    const leaving = new AbortController()
    const asked = fetch(`${platform.baseURL}/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { 'content-type': 'application/json', ...authorization(WHOLE_KEY) },
      body: JSON.stringify({ ...chat, stream: true }),
    }).catch(() => undefined)
    await eventually('the engine answers', () => (engine.openCount > 0 ? true : undefined))
    leaving.abort()
    await asked
    await eventually('the engine is let go', () => (engine.openCount === 0 ? true : undefined))
    await eventually('nothing is live', () => (platform.platform.liveCount === 0 ? true : undefined))
    expect(platform.platform.turnstile.view()).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  it('a slow reader gets all of it, and nothing else', async () => {
    engine.said = { content: `I write to ${LEAK}. `.repeat(2_000) }
    engine.pieceLength = 50
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      ...chat,
      max_tokens: 40_000,
      stream: true,
    })
    let text = ''
    const decoder = new TextDecoder()
    for await (const bytes of response.body!) {
      text += decoder.decode(bytes as Uint8Array, { stream: true })
      await new Promise((resolve) => setImmediate(resolve))
    }
    engine.pieceLength = 3
    expect(text).not.toMatch(CANARY)
    const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join('')
    expect(said).toBe('I write to <EMAIL>. '.repeat(2_000))
  })

  it('an engine that refuses and quotes the prompt tells the client nothing of it', async () => {
    engine.mood = 'refuses'
    for (const path of ['/chat/completions', '/rerank']) {
      const body = path === '/rerank' ? { model: 'order', query: 'q', documents: ['d'] } : chat
      const response = await postJson(platform.baseURL + path, body)
      const text = await response.text()
      expect(response.status, text).toBe(400)
      expect(text).toContain('bad prompt: <EMAIL>')
      expect(text).not.toMatch(CANARY)
    }
  })
})

describe('values of the client’s own', () => {
  const OWN = 'ada.lovelace@own-example.org'

  it('come back in the answer and in its calls; stores keep placeholders', async () => {
    const client = openai(OWN_KEY)
    const ask = [{ role: 'user' as const, content: `My address is ${OWN}.` }]
    await client.chat.completions.create({ ...chat, messages: ask })
    const placeholder = /<EMAIL_[0-9a-f]+>/.exec(engine.bodies.at(-1)!)?.[0]
    expect(placeholder).toBeDefined()
    engine.said = {
      content: `You are ${placeholder}, not ${LEAK} and not <EMAIL_000000000000>.`,
      calls: [`{"to":"${placeholder!.replace('<', '\\u003c')}"}`],
    }
    let text = ''
    let args = ''
    for await (const chunk of await client.chat.completions.create({ ...chat, messages: ask, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? ''
      for (const call of chunk.choices[0]?.delta.tool_calls ?? []) args += call.function?.arguments ?? ''
    }
    expect(text).toBe(`You are ${OWN}, not <EMAIL> and not <EMAIL_000000000000>.`)
    expect(JSON.parse(args)).toEqual({ to: OWN })

    const completion = await client.chat.completions.create({ ...chat, messages: ask, store: true })
    expect(completion.choices[0]?.message.content).toContain(OWN)
    const stored = await eventually('it is stored', () =>
      client.chat.completions.retrieve(completion.id).catch(() => undefined),
    )
    expect(stored.choices[0]?.message.content).toContain(placeholder)
    expect(JSON.stringify(stored)).not.toContain(OWN)

    const response = await client.responses.create({ model: 'sim', input: `My address is ${OWN}.` })
    const own = /<EMAIL_[0-9a-f]+>/.exec(engine.bodies.at(-1)!)?.[0]
    engine.said = { content: `You are ${own}.` }
    const again = await client.responses.create({ model: 'sim', input: `My address is ${OWN}.`, stream: true })
    const events: string[] = []
    let id = response.id
    for await (const event of again) {
      events.push(JSON.stringify(event))
      if (event.type === 'response.completed') id = event.response.id
    }
    expect(events.join('')).toContain(OWN)
    const kept = await eventually('it is stored', () => client.responses.retrieve(id).catch(() => undefined))
    expect(kept.output_text).toBe(`You are ${own}.`)
    expect(JSON.stringify(kept)).not.toContain(OWN)
  })
})
