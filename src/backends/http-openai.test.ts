import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pause } from '../../test/support/eventually.ts'
import { answers, type Behaviour, FakeUpstream, fails, hangs, sends } from '../../test/support/fake-upstream.ts'
import { callOpenAi, frame, word } from '../../test/support/openai-call.ts'
import { json, type Reply, ScriptedServer, text } from '../../test/support/scripted-server.ts'
import { LiveClock } from '../base/live-clock.ts'
import { retryAfterSeconds } from './http-ending.ts'
import { HttpOpenAiBackend, type HttpOpenAiOptions } from './http-openai.ts'
import { probeStyleOf } from './http-probe.ts'

const KEY = 'sk-very-secret-0123456789'
const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await FakeUpstream.start()
})
afterEach(() => upstream.close())

const check = (...[behaviour, ...more]: Parameters<typeof callOpenAi> extends [unknown, ...infer R] ? R : never) =>
  callOpenAi(upstream, behaviour, ...more)

describe('what it sends', () => {
  it.each([
    ['bearer', { apiKey: KEY }, 'authorization', `Bearer ${KEY}`],
    ['api-key', { apiKey: KEY, auth: 'api-key' as const }, 'api-key', KEY],
    ['a header of its own', { apiKey: KEY, auth: { header: 'x-goog-api-key' } }, 'x-goog-api-key', KEY],
    ['further headers', { headers: { 'x-tenant': 'one' } }, 'x-tenant', 'one'],
  ])('authenticates with %s', async (_, options, header, value) => {
    await check(answers(), options)
    expect(upstream.seen[0]?.headers[header]).toBe(value)
  })

  it('keeps the path and the version of an Azure deployment', async () => {
    const url = `${upstream.url.replace('/v1', '')}/openai/deployments/gpt-4o?api-version=2024-10-21`
    const { ending } = await check(answers(), { url })
    expect(ending.kind).toBe('finished')
    expect(upstream.seen[0]?.path).toBe('/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21')
  })

  it.each([
    ['as the client did', {}, { max_completion_tokens: 20 }, { max_completion_tokens: 20 }],
    ['within the plan', {}, { max_tokens: 90 }, { max_tokens: 50 }],
    [
      'as the engine must',
      { outputBound: 'max_completion_tokens' as const },
      { max_tokens: 20 },
      { max_completion_tokens: 20 },
    ],
  ])('bounds the answer %s', async (_, style, body, wanted) => {
    await check(answers(), { style }, {}, body)
    const { max_tokens, max_completion_tokens } = upstream.seen[0]!.body
    expect(JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens }))).toEqual(wanted)
  })

  it('does not ask for usage where that is refused', async () => {
    await check(answers(), { style: { asksUsage: false } }, {}, { stream_options: { include_usage: true } })
    expect(upstream.seen[0]?.body).not.toHaveProperty('stream_options')
  })
})

describe('what it understands', () => {
  it.each([
    [
      'counts of llama.cpp where there is no usage',
      [
        word('a'),
        frame({
          choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
          timings: { prompt_n: 7, cache_n: 3, predicted_n: 1 },
        }),
      ],
      { promptTokens: 10, cachedTokens: 3, outputTokens: 1 },
    ],
    ['no usage at all', [word('a', 'stop')], undefined],
    [
      'usage with nulls',
      [
        word('a', 'stop'),
        frame({ choices: [], usage: { prompt_tokens: 5, completion_tokens: null, prompt_tokens_details: null } }),
      ],
      { promptTokens: 5, cachedTokens: 0, outputTokens: 0 },
    ],
  ])('%s', async (_, frames, usage) => {
    const { ending } = await check(sends(...frames))
    const { told: _told, ...counted } = (ending.kind === 'finished' && ending.usage) || {}
    expect(ending.kind).toBe('finished')
    expect(counted).toEqual(usage ?? {})
  })

  it.each([
    ['eos_token', 'stop'],
    ['max_tokens', 'length'],
    ['tool_calls', 'tool_calls'],
    ['something_new', 'something_new'],
  ])('finish reason %s', async (theirs, ours) => {
    const { deltas } = await check(sends(word('a', ''), word('b', theirs)))
    expect(deltas.flatMap(({ choices }) => choices?.map(({ finishReason }) => finishReason))).toEqual([null, ours])
  })

  it('parts instead of text, empty frames, and [DONE] with a blank', async () => {
    const parts = frame({
      choices: [{ index: 0, delta: { content: [{ type: 'text', text: 'hel' }, { text: 'lo' }] } }],
    })
    const { ending, deltas } = await check(sends('data:\n\n', parts, 'data: [DONE] \n\n'))
    expect(ending.kind).toBe('finished')
    expect(deltas[0]?.choices?.[0]?.content).toBe('hello')
  })

  it('a stream whose connection is reset after the answer was whole', async () => {
    const resets: Behaviour = async ({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(word('a', 'stop'))
      await new Promise((resolve) => setTimeout(resolve, 20))
      res.destroy()
    }
    expect((await check(resets)).ending.kind).toBe('finished')
    expect((await check(resets, {}, { choiceCount: 2 })).ending.kind).toBe('lost')
  })

  it.each(['abort', 'error'])('an answer that the engine ended with %s is none', async (reason) => {
    expect((await check(sends(word('a'), word('', reason)))).ending.kind).toBe('lost')
  })
})

describe('what errors mean', () => {
  const DENIED = { kind: 'refused', refusal: { code: 'replica-denied', blame: 'platform', retryAfterUs: undefined } }
  const FULL = { kind: 'refused', refusal: { code: 'replica-refused', blame: 'platform', retryAfterUs: 7_000_000 } }

  it.each([
    ['in the middle, with a code', sends(word('a'), frame({ error: { code: 400, message: 'x' } })), { kind: 'lost' }],
    [
      'at first, with a code',
      sends(frame({ error: { code: 429, message: 'x' } })),
      { kind: 'refused', refusal: { blame: 'platform' } },
    ],
    ['at first, in a string', sends(frame({ error: 'out of memory' })), { kind: 'lost' }],
    ['as an older vLLM says it', sends(frame({ object: 'error', message: 'x', code: 40_303 })), { kind: 'lost' }],
    [
      'a document under a 200',
      fails(200, { error: { code: '503', message: 'x' } }),
      { kind: 'refused', refusal: { blame: 'platform' } },
    ],
    ['a redirect', fails(307, '', { location: 'http://elsewhere/' }), DENIED],
    ['a wrong key', fails(401, { error: { message: 'x' } }), DENIED],
    ['a key without rights', fails(403, ''), DENIED],
    ['a model that is not there', fails(404, { detail: 'Not Found' }, { 'retry-after': '3' }), DENIED],
    ['a used-up quota, as OpenAI says it', fails(429, { error: { code: 'insufficient_quota' } }), DENIED],
    ['a used-up quota, by its type', fails(429, { error: { type: 'insufficient_quota', code: null } }), DENIED],
    ['too many requests', fails(429, { error: { code: 'rate_limit_exceeded' } }, { 'retry-after': '7' }), FULL],
    ['no room', fails(503, 'busy', { 'retry-after-ms': '7000' }), FULL],
    [
      'a failed generation of TGI',
      fails(424, { error: 'Request failed during generation', error_type: 'generation' }),
      { kind: 'lost' },
    ],
    ['a time limit of theirs', fails(408, ''), { kind: 'lost' }],
    [
      'FastAPI',
      fails(422, { detail: 'no such field' }),
      { kind: 'refused', refusal: { blame: 'request', told: { status: 422, error: { message: 'no such field' } } } },
    ],
  ])('%s', async (_, behaviour, wanted) => {
    expect((await check(behaviour)).ending).toMatchObject(wanted)
  })

  it.each([
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1.5],
    [{ 'retry-after': 'Sun, 06 Nov 1994 08:49:47 GMT' }, 10],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('wait %j', (headers, seconds) => {
    expect(retryAfterSeconds(headers, Date.parse('Sun, 06 Nov 1994 08:49:37 GMT'))).toBe(seconds)
  })
})

describe('secrets', () => {
  it('are in nothing that it says, prints or reports', async () => {
    const said = `Incorrect API key provided: ${KEY}. You sent Bearer ${KEY}, also sk-other*****6789.`
    const endings = [400, 401, 403, 429, 500].map(
      async (status) => (await check(fails(status, { error: { message: said } }), { apiKey: KEY })).ending,
    )
    for (const ending of endings) expect(inspect(await ending, { depth: 9 })).not.toMatch(/secret|sk-/)
    const backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: undefined, apiKey: KEY })
    expect(inspect(backend, { depth: 9, showHidden: true })).not.toContain(KEY)
    expect(JSON.stringify(backend)).not.toContain(KEY)
    await upstream.close()
    expect(inspect(await backend.probe(replica))).not.toContain(KEY)
    await backend.close()
    upstream = await FakeUpstream.start()
  })
})

describe('time limits', () => {
  const clock = new LiveClock()
  it('give up a silent stream while there is time for another', async () => {
    const { ending } = await check(hangs, { clock }, {}, {}, clock.now() + 60_000)
    expect(ending).toEqual({ kind: 'lost', because: 'no token came in half of the time that it had' })
  })

  it('let a stream that has begun go on', async () => {
    const words = Array.from({ length: 20 }, (_, i) => `w${i} `)
    const { ending } = await check(answers({ words, everyMs: 10 }), { clock }, {}, {}, clock.now() + 100_000)
    expect(ending.kind).toBe('finished')
  })
})

describe('TLS', () => {
  const fixture = (name: string): string =>
    readFileSync(new URL(`../../test/fixtures/tls/${name}.pem`, import.meta.url), 'utf8')

  it('trusts the authority that it is given, and nobody without', async () => {
    const server = createServer({ key: fixture('key'), cert: fixture('cert') }, (_req, res) => {
      res.writeHead(200).end('{}')
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const url = `https://localhost:${(server.address() as AddressInfo).port}/v1`
    const reports = [{ ca: fixture('cert') }, undefined, { isVerified: false }].map(async (tls) => {
      const backend = new HttpOpenAiBackend({ url, upstreamModel: undefined, tls })
      const { isReady } = await backend.probe(replica)
      await backend.close()
      return isReady
    })
    expect(await Promise.all(reports)).toEqual([true, false, true])
    server.closeAllConnections()
    server.close()
  })
})

describe('probes', () => {
  const probe = async (
    routes: Parameters<typeof ScriptedServer.start>[0],
    options: Partial<HttpOpenAiOptions> = {},
  ) => {
    const server = await ScriptedServer.start(routes)
    const backend = new HttpOpenAiBackend({ url: `${server.url}/v1`, upstreamModel: undefined, ...options })
    const report = await backend.probe(replica)
    await backend.close()
    await server.close()
    return { report, asked: server.seen.map(({ path }) => path) }
  }
  const page = 'vllm:num_requests_running 3\nvllm:num_requests_waiting 2\n'

  it.each([
    [
      'vLLM',
      { 'GET /health': text(''), 'GET /metrics': text(page) },
      { isReady: true, runningCount: 3, waitingCount: 2 },
    ],
    ['one without metrics', { 'GET /health': text('OK') }, { isReady: true }],
    [
      'llama.cpp that loads',
      { 'GET /health': json({ error: { code: 503, message: 'Loading model' } }, 503) },
      { isReady: false },
    ],
    ['Ollama', { 'GET /': text('Ollama is running'), 'GET /v1/models': json({ data: [] }) }, { isReady: true }],
    ['nobody', {}, { isReady: false }],
  ])('tell whether %s is ready', async (_, routes, wanted) => {
    expect((await probe(routes)).report).toMatchObject(wanted)
  })

  it('give SGLang, whose health takes a token, the time for a long step, and nobody else', async () => {
    const slowFrom = (first: number, metrics: string) => {
      let asked = 0
      const slow: Reply = async (call, res) => {
        if (++asked >= first) await pause(2_300)
        await text('')(call, res)
      }
      return { 'GET /health': slow, 'GET /metrics': text(metrics) }
    }
    const twice = async (routes: Parameters<typeof ScriptedServer.start>[0]) => {
      const server = await ScriptedServer.start(routes)
      const backend = new HttpOpenAiBackend({ url: `${server.url}/v1`, upstreamModel: undefined })
      const reports = [await backend.probe(replica), await backend.probe(replica)]
      await backend.close()
      await server.close()
      return reports.map(({ isReady }) => isReady)
    }
    const said = await Promise.all([
      probe(slowFrom(1, 'sglang:num_running_reqs 3\n'), { probe: probeStyleOf('sglang') }),
      twice(slowFrom(2, 'sglang:num_running_reqs 3\n')),
      twice(slowFrom(2, page)),
    ])
    expect(said).toMatchObject([{ report: { isReady: true, runningCount: 3 } }, [true, true], [true, false]])
  })

  it('ask where they are told to, or not at all', async () => {
    const routes = { 'GET /livez': text('') }
    expect(await probe(routes, { probe: { kind: 'path', path: '/livez' } })).toMatchObject({
      report: { isReady: true },
      asked: ['/livez'],
    })
    expect(await probe({}, { probe: { kind: 'none' } })).toMatchObject({ report: { isReady: true }, asked: [] })
  })
})
