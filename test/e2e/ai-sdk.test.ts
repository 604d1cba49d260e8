import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai'
import { APICallError, generateText, RetryError, streamText } from 'ai'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, fails } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** The Vercel AI SDK, whose readers of streams and errors are its own, in its chat API mode. */

const prompt = 'What is a weir? A weir is a low dam. It raises the level of a river.'

let platform: TestPlatform
let provider: OpenAIProvider

beforeAll(async () => {
  platform = await startPlatform()
  provider = createOpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY })
})
afterAll(() => platform.close())

const errorOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )

describe('generateText', () => {
  it('answers with text, usage and a finish reason', async () => {
    const answer = await generateText({
      model: provider.chat(MODEL),
      prompt,
      maxOutputTokens: 15,
      seed: 1,
      maxRetries: 0,
    })
    expect(answer.text).toContain('Simulated answer')
    expect(answer.finishReason).toBe('length')
    expect(answer.usage.outputTokens).toBe(15)
    expect(answer.usage.inputTokens).toBeGreaterThan(10)
  })

  it('takes a conversation with a system message and a seed', async () => {
    const once = () =>
      generateText({
        model: provider.chat(MODEL),
        instructions: 'Be brief.',
        messages: [
          { role: 'user', content: prompt },
          { role: 'assistant', content: 'A low dam.' },
          { role: 'user', content: [{ type: 'text', text: 'And a spillway?' }] },
        ],
        seed: 4,
        temperature: 0,
        stopSequences: ['dam'],
        maxOutputTokens: 40,
        maxRetries: 0,
      })
    const [first, second] = await Promise.all([once(), once()])
    expect(first.text).toBe(second.text)
    expect(first.text).not.toContain('dam')
  })
})

describe('streamText', () => {
  it('streams parts that add up to the answer', async () => {
    const result = streamText({ model: provider.chat(MODEL), prompt, maxOutputTokens: 15, seed: 1, maxRetries: 0 })
    const parts: string[] = []
    for await (const part of result.textStream) parts.push(part)
    expect(parts.length).toBeGreaterThan(5)
    expect(parts.join('')).toBe(await result.text)
    expect(await result.finishReason).toBe('length')
    expect((await result.usage).outputTokens).toBe(15)
  })

  it('settles as cancelled when it is aborted in the middle', async () => {
    const abort = new AbortController()
    const result = streamText({
      model: provider.chat(MODEL),
      prompt,
      maxOutputTokens: 500,
      seed: 11,
      abortSignal: abort.signal,
      maxRetries: 0,
      onError: () => {},
    })
    let seen = 0
    for await (const _ of result.textStream) if (++seen === 5) abort.abort()
    const settled = await eventually('it settles', () => {
      platform.journal.drain()
      return platform.entries.findLast((entry) => entry.kind === 'settled' && entry.outcome === 'cancelled')
    })
    expect(settled).toMatchObject({ because: 'client-gone', tenantId: 'acme' })
    await eventually('the engine is idle', async () => (await platform.engine()).runningCount === 0)
  })
})

describe('errors', () => {
  it.each([
    ['a model that is not there', 'gpt-17', {}, 404, 'model_not_found'],
    ['a temperature beyond measure', MODEL, { temperature: 99 }, 400, 'invalid_value'],
  ])('%s', async (_what, model, more, statusCode, code) => {
    const error = await errorOf(generateText({ model: provider.chat(model), prompt, ...more }))
    expect(error).toBeInstanceOf(APICallError)
    expect(error).toMatchObject({ statusCode, isRetryable: false, data: { error: { code } } })
  })

  it('a key that nobody has', async () => {
    const stranger = createOpenAI({ baseURL: platform.baseURL, apiKey: 'sk-nobody' })
    const errors: unknown[] = []
    const result = streamText({
      model: stranger.chat(MODEL),
      prompt,
      onError: ({ error }) => {
        errors.push(error)
      },
    })
    for await (const _ of result.textStream) expect.unreachable('there is nothing to stream')
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({ statusCode: 401 })
  })

  it('an engine that is full: retried as the headers say, then told', async () => {
    const upstream = await FakeUpstream.start(fails(503, { error: { message: 'full' } }, { 'retry-after': '0.05' }))
    const full = await startPlatform(upstreamTree([upstream.url]))
    const client = createOpenAI({ baseURL: full.baseURL, apiKey: ACME_KEY })
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const error = await errorOf(generateText({ model: client.chat(MODEL), prompt, maxRetries: 2 }))
    const waitsMs = timers.mock.calls.map(([, ms]) => ms)
    timers.mockRestore()
    // On its own the SDK would wait two seconds, then four.
    expect(waitsMs).not.toContain(2_000)
    expect(waitsMs).not.toContain(4_000)
    expect(error).toBeInstanceOf(RetryError)
    expect((error as RetryError).errors).toHaveLength(3)
    expect((error as RetryError).lastError).toMatchObject({
      statusCode: 503,
      data: { error: { code: 'replica_refused' } },
    })
    await full.close()
    await upstream.close()
  })
})
