import { readFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import { afterAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { TokenDesk } from '../support/fake-cloud.ts'
import { AWS_TEST_REGION, framed, KeyDesk } from '../support/fake-sagemaker.ts'
import { startTriton, TRITON_MODEL } from '../support/fake-triton.ts'
import { answers, FakeUpstream, WORDS } from '../support/fake-upstream.ts'
import { ScriptedServer, text } from '../support/scripted-server.ts'
import { ACME_KEY, MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Engines of other people, as a configuration file names them: keys, addresses, certificates, probes, protocols. */

const KEY = 'sk-upstream-secret-0123456789'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }

const closers: Array<() => unknown> = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

async function withBackend(backend: object, replicas: readonly string[]): Promise<TestPlatform> {
  const platform = await startPlatform(testTree({ pools: [{ model: MODEL, backend, replicas }] }))
  closers.push(() => platform.close())
  return platform
}

async function engine(behaviour = answers()): Promise<FakeUpstream> {
  const upstream = await FakeUpstream.start(behaviour)
  closers.push(() => upstream.close())
  return upstream
}

describe('keys', () => {
  it.each([
    ['bearer', { authorization: `Bearer ${KEY}` }],
    ['api-key', { 'api-key': KEY }],
    ['none', {}],
  ])('are sent as %s', async (auth, wanted) => {
    const upstream = await engine()
    const key = auth === 'none' ? {} : { apiKey: KEY }
    const platform = await withBackend({ kind: 'http-openai', auth, ...key }, [upstream.url])
    expect((await postJson(`${platform.baseURL}/chat/completions`, chat)).status).toBe(200)
    const { authorization, 'api-key': apiKey } = upstream.seen.at(-1)!.headers
    expect(JSON.parse(JSON.stringify({ authorization, 'api-key': apiKey }))).toEqual(wanted)
  })

  it('and deployments go where Azure wants them', async () => {
    const seen: string[] = []
    const server = await ScriptedServer.start({
      'GET /openai/models': text('{"data":[]}'),
      'POST /openai/deployments/gpt/chat/completions': ({ query, headers }, res) => {
        seen.push(`${query.get('api-version')} ${String(headers['api-key'])}`)
        const choices = [{ index: 0, message: { content: 'Hi.' }, finish_reason: 'stop' }]
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices }))
      },
    })
    closers.push(() => server.close())
    const backend = { kind: 'http-openai', engine: 'azure', auth: 'api-key', apiKey: KEY, apiVersion: '2024-10-21' }
    const platform = await withBackend(backend, [`${server.url}/openai/deployments/gpt`])
    expect((await postJson(`${platform.baseURL}/chat/completions`, chat)).status).toBe(200)
    expect(seen).toEqual([`2024-10-21 ${KEY}`])
    expect(server.seen[0]).toMatchObject({ path: '/openai/models', headers: { 'api-key': KEY } })
  })
})

describe('endpoints of clouds', () => {
  it.each([
    ['vertex', () => new TokenDesk(), '/v1/projects/p/locations/r/endpoints/7'],
    ['azure-ml', () => new TokenDesk(), '/v1'],
    ['sagemaker', () => new KeyDesk(), '/endpoints/llama'],
  ] as const)('answer through the gateway (%s)', async (name, open, path) => {
    const desk = open()
    closers.push(() => desk.close())
    const upstream = await engine(name === 'sagemaker' ? framed(answers()) : answers())
    upstream.guard = desk.guard
    const region = name === 'sagemaker' ? { region: AWS_TEST_REGION } : {}
    const backend = { kind: 'http-openai', engine: name, credential: { file: desk.file, ...region } }
    const platform = await withBackend(backend, [new URL(path, upstream.url).href])
    for (const stream of [false, true]) {
      const answered = await postJson(`${platform.baseURL}/chat/completions`, { ...chat, stream })
      expect(answered.status).toBe(200)
      expect(await answered.text()).toContain(stream ? 'data: [DONE]' : WORDS.join(''))
    }
  })
})

describe('TLS', () => {
  const file = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url))
  const pem = (name: string): string => readFileSync(file(name), 'utf8')

  async function secured(more: ServerOptions = {}): Promise<string> {
    const server = createServer({ key: pem('key'), cert: pem('cert'), ...more }, (_req, res) => {
      const choices = [{ index: 0, message: { content: 'Hi.' }, finish_reason: 'stop' }]
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices }))
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    closers.push(() => void server.close())
    return `https://localhost:${(server.address() as AddressInfo).port}/v1`
  }

  const asking = async (url: string, tls?: object): Promise<() => Promise<number>> => {
    const platform = await withBackend({ kind: 'http-openai', ...(tls && { tls }) }, [url])
    return async () => (await postJson(`${platform.baseURL}/chat/completions`, chat)).status
  }
  const statusWith = async (url: string, tls?: object): Promise<number> => (await asking(url, tls))()
  /** A busy machine may miss its first probe. */
  const isServedWith = async (url: string, tls: object): Promise<void> => {
    const ask = await asking(url, tls)
    await eventually('it is served', async () => (await ask()) === 200)
  }

  it('trusts the authority that it is given, and a stranger only when told to', async () => {
    const url = await secured()
    await isServedWith(url, { caFile: file('cert') })
    expect(await statusWith(url)).toBe(503)
    await isServedWith(url, { insecure: true })
    expect(await statusWith(url, { caFile: file('cert'), serverName: 'somebody.else' })).toBe(503)
  })

  it('shows a certificate to an engine that asks for one', async () => {
    const url = await secured({ requestCert: true, rejectUnauthorized: true, ca: pem('cert') })
    const ca = { caFile: file('cert') }
    expect(await statusWith(url, ca)).toBe(503)
    await isServedWith(url, { ...ca, certFile: file('cert'), keyFile: file('key') })
  })

  it('says which file it cannot read, and warns of what is not checked', async () => {
    const missing = withBackend({ kind: 'http-openai', tls: { caFile: '/nowhere/ca.pem' } }, ['https://localhost:1/v1'])
    await expect(missing).rejects.toThrow(/pool sim-local: tls\.caFile is "\/nowhere\/ca\.pem".*ENOENT/)
    const platform = await withBackend({ kind: 'http-openai', tls: { insecure: true } }, ['https://localhost:1/v1'])
    expect(platform.printed).toContain('without checking certificates')
  })
})

describe('probes', () => {
  it.each([
    ['vllm', {}, ['/health', '/metrics']],
    ['llama.cpp', {}, ['/health', '/metrics']],
    ['triton', {}, ['/health/ready', '/metrics']],
    ['ollama', {}, ['/api/version']],
    ['openai', {}, ['/v1/models']],
    ['tgi', { healthPath: '/livez' }, ['/livez', '/metrics']],
    ['none', {}, []],
  ])('ask %s where it answers (%j)', async (name, paths, wanted) => {
    const server = await ScriptedServer.start(Object.fromEntries(wanted.map((path) => [`GET ${path}`, text('')])))
    closers.push(() => server.close())
    const platform = await withBackend({ kind: 'http-openai', engine: name, ...paths }, [`${server.url}/v1`])
    expect(await platform.engine()).toMatchObject({ isReady: true })
    expect([...new Set(server.seen.map(({ path }) => path))]).toEqual(wanted)
  })
})

describe('a Triton server', () => {
  it('serves chat completions to OpenAI’s client, whole and streamed', async () => {
    const triton = await startTriton()
    closers.push(() => triton.close())
    const platform = await withBackend({ kind: 'http-oip', upstreamModel: TRITON_MODEL, template: 'chatml' }, [
      triton.url,
    ])
    const client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
    const whole = await client.chat.completions.create({
      ...chat,
      n: 2,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming)
    expect(whole.choices.map(({ message }) => message.content)).toEqual([
      'A weir is a low däm.',
      'A weir is a low däm.',
    ])
    expect(whole.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 12 })
    const stream = client.chat.completions.stream(chat as OpenAI.ChatCompletionCreateParamsStreaming)
    expect(await stream.finalContent()).toBe('A weir is a low däm.')
    const asked = triton.seen.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body) as object)
    expect(asked[0]).toMatchObject({ text_input: '<|im_start|>user\nHello?<|im_end|>\n<|im_start|>assistant\n' })
    const forced = postJson(`${platform.baseURL}/chat/completions`, { ...chat, tool_choice: 'required' })
    expect(await (await forced).json()).toMatchObject({ error: { param: 'tool_choice' } })
  })

  it('is not used while its model is not ready', async () => {
    const triton = await startTriton({ isReady: false })
    closers.push(() => triton.close())
    const platform = await withBackend({ kind: 'http-oip', upstreamModel: TRITON_MODEL }, [triton.url])
    expect((await postJson(`${platform.baseURL}/chat/completions`, chat)).status).toBe(503)
  })
})

describe('a deadline', () => {
  it('that the client set ends a running answer with an error frame', async () => {
    const words = Array.from({ length: 2_000 }, (_, i) => `w${i} `)
    const upstream = await engine(answers({ words, everyMs: 50 }))
    const platform = await withBackend({ kind: 'http-openai' }, [upstream.url])
    const body = { ...chat, stream: true, max_tokens: 60, spillway: { deadline_ms: 1_500 } }
    const response = await postJson(`${platform.baseURL}/chat/completions`, body)
    const frames = (await response.text()).trim().split('\n\n')
    expect(frames.at(-1)).toBe('data: [DONE]')
    expect(JSON.parse(frames.at(-2)!.slice(6))).toMatchObject({ error: { code: 'deadline_passed' } })
    expect(frames.length).toBeGreaterThan(5)
    await eventually('the engine is free', () => upstream.openAnswers === 0 || undefined)
    expect(await platform.settled(response.headers.get('x-request-id')!)).toMatchObject({ outcome: 'expired' })
  })
})
