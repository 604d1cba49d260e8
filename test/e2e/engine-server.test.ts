import { spawnSync } from 'node:child_process'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { engineOptionsOf } from '../../src/assembly/engine-options.ts'
import { buildConfig } from '../../src/config/load.ts'
import { Engine } from '../../src/engine/engine.ts'
import { framesOf, metricOf, postJson, SpillwayProcess } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { parseExposition } from '../support/parse-exposition.ts'

/** `spillway engine` as a process of its own, seen from where a router or a client stands. */

const PROFILE = 'h100-llama-8b'
const MODEL = 'meta-llama/Llama-3.1-8B-Instruct'
const DOC = 'A spillway lets water pass a dam. It is sized for the largest flood. Most are made of concrete.'
const MESSAGES = [{ role: 'user', content: DOC }]

describe('an engine server', () => {
  let engine: SpillwayProcess
  beforeAll(async () => {
    engine = await SpillwayProcess.start('engine', '--profile', PROFILE, '--model', MODEL)
  })
  afterAll(() => engine.stop())

  const post = (path: string, body: unknown, init?: RequestInit) => postJson(engine.url + path, body, init)
  const chat = (body: object, init?: RequestInit) => post('/v1/chat/completions', { messages: MESSAGES, ...body }, init)
  const json = async (response: Response | Promise<Response>) =>
    (await response).json() as Promise<Record<string, unknown>>

  it('says what it is and how it is', async () => {
    const health = await fetch(`${engine.url}/health`)
    expect([health.status, await health.text()]).toEqual([200, ''])
    expect((await fetch(`${engine.url}/ping`)).status).toBe(200)
    expect((await fetch(`${engine.url}/ping`, { method: 'POST' })).status).toBe(200)
    expect(await json(fetch(`${engine.url}/version`))).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+\+spillway/),
    })
    expect(await json(fetch(`${engine.url}/load`))).toEqual({ server_load: 0 })
    expect(await json(fetch(`${engine.url}/v1/models`))).toMatchObject({
      object: 'list',
      data: [{ id: MODEL, object: 'model', owned_by: 'vllm', root: MODEL, max_model_len: 32_768 }],
    })
    expect(engine.said).toContain(PROFILE)
  })

  it('answers chats and completions, with the tokens counted and the name optional', async () => {
    const answer = await json(chat({ max_tokens: 200 }, { headers: { 'x-request-id': 'abc' } }))
    expect(answer).toMatchObject({
      id: 'chatcmpl-abc',
      object: 'chat.completion',
      model: MODEL,
      choices: [{ message: { role: 'assistant', content: expect.stringContaining('A spillway lets water') } }],
    })
    const {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: total,
    } = answer['usage'] as Record<string, number>
    expect(prompt! + output!).toBe(total)
    const text = (answer['choices'] as Array<{ message: { content: string } }>)[0]!.message.content
    const counted = await json(post('/tokenize', { prompt: text }))
    expect(counted).toMatchObject({ count: output, max_model_len: 32_768 })
    expect(await json(post('/tokenize', { model: MODEL, messages: MESSAGES }))).toMatchObject({ count: prompt })
    expect(await json(post('/detokenize', { tokens: counted['tokens'] }))).toEqual({ prompt: text })
    const completion = await json(
      post('/v1/completions', { model: MODEL, prompt: ['Dams hold.', 'Weirs spill.'], n: 2 }),
    )
    // vLLM's own default: sixteen tokens.
    expect(completion).toMatchObject({ object: 'text_completion', usage: { completion_tokens: 64 } })
    expect(completion['choices']).toHaveLength(4)
  })

  it('finds in its cache what it has computed before, within a salt', async () => {
    const long = [{ role: 'user', content: `Cached. ${DOC} `.repeat(20) }]
    const cached = async (cache_salt?: string) => {
      const answer = await json(chat({ messages: long, max_tokens: 2, cache_salt }))
      return (answer['usage'] as { prompt_tokens_details: { cached_tokens: number } }).prompt_tokens_details
        .cached_tokens
    }
    expect(await cached()).toBe(0)
    expect(await cached()).toBeGreaterThan(300)
    expect(await cached('another tenant')).toBe(0)
  })

  it('streams to the official client, usage last', async () => {
    const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none' })
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: DOC }],
      max_tokens: 40,
      stream: true,
      stream_options: { include_usage: true },
    })
    let text = ''
    let chunks = 0
    let last: OpenAI.ChatCompletionChunk | undefined
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      if (chunk.choices.length > 0) chunks++
      last = chunk
    }
    expect(text).toMatch(/^Simulated/)
    expect(last?.usage?.completion_tokens).toBe(chunks)
  })

  it('keeps the pace of the GPU: exactly by its own clock, and never sooner by ours', async () => {
    const outputTokens = 120
    const before = await Promise.all(
      ['request_decode_time_seconds_sum', 'time_to_first_token_seconds_sum'].map((name) => metricOf(engine.url, name)),
    )
    const asked = performance.now()
    const response = await chat({
      max_tokens: outputTokens,
      ignore_eos: true,
      stream: true,
      messages: [{ role: 'user', content: `pace ${DOC}` }],
    })
    const frames: Array<{ at: number; data: string }> = []
    for await (const frame of framesOf(response)) frames.push(frame)
    const [decodeS, ttftS] = await Promise.all(
      ['request_decode_time_seconds_sum', 'time_to_first_token_seconds_sum'].map((name) => metricOf(engine.url, name)),
    )
    const promptTokens = (await json(post('/tokenize', { messages: [{ role: 'user', content: `pace ${DOC}` }] })))[
      'count'
    ] as unknown as number
    const expected = timesOf(promptTokens, outputTokens)
    expect(decodeS! - before[0]!).toBeCloseTo(expected.decodeS, 5)
    expect(ttftS! - before[1]!).toBeCloseTo(expected.ttftS, 5)
    expect(frames).toHaveLength(outputTokens + 1)
    const tookS = (frames[outputTokens - 1]!.at - asked) / 1_000
    expect(tookS).toBeGreaterThan((expected.ttftS + expected.decodeS) * 0.9 - 0.02)
  })

  it.each([
    ['streamed', true],
    ['not streamed', false],
  ])('frees everything when a client leaves: %s', async (_, stream) => {
    const outputTokens = 5_000
    const generated = async () => (await metricOf(engine.url, 'generation_tokens_total')) ?? 0
    const before = await generated()
    const leaving = new AbortController()
    const response = chat({ max_tokens: outputTokens, ignore_eos: true, stream }, { signal: leaving.signal })
    response.catch(() => {})
    await eventually('it runs', async () => (await metricOf(engine.url, 'num_requests_running')) === 1)
    leaving.abort()
    await eventually(
      'all is free',
      async () =>
        (await metricOf(engine.url, 'num_requests_running')) === 0 &&
        (await metricOf(engine.url, 'kv_cache_usage_perc')) === 0,
    )
    // Let go, not finished.
    expect((await generated()) - before).toBeLessThan(outputTokens)
    expect(await json(fetch(`${engine.url}/load`))).toEqual({ server_load: 0 })
  })

  const ERRORS: ReadonlyArray<readonly [string, string, unknown, number, Record<string, unknown>]> = [
    ['no messages', '/v1/chat/completions', {}, 400, { type: 'Bad Request', param: 'messages' }],
    ['bad JSON', '/v1/chat/completions', '{', 400, { type: 'Bad Request', message: /JSON/ }],
    ['wrong type', '/v1/chat/completions', { messages: MESSAGES, n: 'two' }, 400, { type: 'Bad Request', param: 'n' }],
    [
      'stream options',
      '/v1/chat/completions',
      { messages: MESSAGES, stream_options: {} },
      400,
      { param: 'stream_options' },
    ],
    [
      'unknown model',
      '/v1/chat/completions',
      { messages: MESSAGES, model: 'gpt' },
      404,
      { type: 'NotFoundError', message: 'The model `gpt` does not exist.' },
    ],
    [
      'top_logprobs',
      '/v1/chat/completions',
      { messages: MESSAGES, top_logprobs: 1 },
      400,
      { type: 'BadRequestError', param: 'top_logprobs' },
    ],
    [
      'too many tokens',
      '/v1/completions',
      { prompt: 'x', max_tokens: 40_000 },
      400,
      {
        type: 'BadRequestError',
        message: /^This model's maximum context length is 32768 tokens\. However, you requested 40000 output tokens/,
      },
    ],
    [
      'a prompt too long',
      '/v1/completions',
      { prompt: 'dam '.repeat(50_000) },
      400,
      { type: 'BadRequestError', message: /contains at least \d+ input tokens/ },
    ],
    [
      'too many choices',
      '/v1/chat/completions',
      { messages: MESSAGES, n: 999 },
      400,
      { type: 'BadRequestError', param: 'n' },
    ],
    [
      'a bound of no tokens',
      '/v1/completions',
      { prompt: 'x', max_tokens: 0 },
      400,
      { type: 'BadRequestError', message: 'max_tokens must be at least 1, got 0.' },
    ],
    ['unknown token', '/detokenize', { tokens: [99_999_999] }, 400, { type: 'BadRequestError', param: 'tokens' }],
    ['unknown route', '/v1/nothing', {}, 404, { type: 'Not Found', message: 'Not Found' }],
  ]
  it.each(ERRORS)('puts errors as vLLM does: %s', async (_, path, body, status, error) => {
    const response = await post(path, body)
    expect(response.status).toBe(status)
    const told = ((await response.json()) as { error: Record<string, unknown> }).error
    expect(Object.keys(told).toSorted()).toEqual(['code', 'message', 'param', 'type'])
    expect(told['code']).toBe(status)
    for (const [key, value] of Object.entries(error)) {
      if (value instanceof RegExp) expect(told[key]).toMatch(value)
      else expect(told[key]).toBe(value)
    }
  })

  it('stays responsive while it reads long prompts', async () => {
    const reading = Promise.all(
      [' ', 'a', '水', '🌊', 'dam '].map((unit) =>
        chat({ max_tokens: 1, messages: [{ role: 'user', content: unit.repeat(60_000 / unit.length) }] }),
      ),
    )
    let isDone = false
    void reading.finally(() => {
      isDone = true
    })
    let answeredMeanwhile = 0
    while (!isDone) {
      expect((await fetch(`${engine.url}/health`)).status).toBe(200)
      if (!isDone) answeredMeanwhile++
    }
    for (const response of await reading) expect([200, 400]).toContain(response.status)
    // Without slices each of the five prompts is read in one go, and one answer at most comes between two of them: six.
    // How many come between slices, the machine decides, which may give us little of its time.
    expect(answeredMeanwhile).toBeGreaterThan(8)
  })

  const withoutPromtool = missing('promtool')
  it.skipIf(withoutPromtool !== undefined)('writes metrics that Prometheus reads', async () => {
    await chat({ max_tokens: 3 })
    const response = await fetch(`${engine.url}/metrics`)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const text = await response.text()
    const families = parseExposition(text)
    for (const name of [
      'num_requests_running',
      'kv_cache_usage_perc',
      'prompt_tokens_total',
      'inter_token_latency_seconds',
    ])
      expect(families.get(`vllm:${name}`)?.samples[0]?.labels).toMatchObject({ model_name: MODEL })
    const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
    // The names are vLLM's: promtool would have chosen others, and finds nothing else to say.
    const complaints = `${promtool.stdout}${promtool.stderr}`.split('\n').filter((line) => line !== '')
    const ours = complaints.filter(
      (line) => !line.endsWith("metric names should not contain ':'") && !/iteration_tokens_total.*"_total"/.test(line),
    )
    expect(ours).toEqual([])
  })
})

/** What one sequence alone takes in an engine without a clock. */
function timesOf(promptTokens: number, outputTokens: number): { ttftS: number; decodeS: number } {
  const engine = new Engine(engineOptionsOf(buildConfig(undefined, {}), PROFILE))
  engine.submit(0, { id: 'a', promptTokens, outputTokens, reports: 'every-step' })
  let times = { ttftS: 0, decodeS: 0 }
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
    for (const event of engine.advance(at)) {
      if (event.kind === 'finished')
        times = { ttftS: event.firstTokenAt / 1e6, decodeS: (event.at - event.firstTokenAt) / 1e6 }
    }
  }
  return times
}
