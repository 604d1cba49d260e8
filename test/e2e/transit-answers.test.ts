import OpenAI, { toFile } from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { InsideEngine } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import { drained } from '../support/fake-upstream.ts'
import { type PassedCall, takes } from '../support/passing-engine.ts'
import { ACME_KEY, authorization, GLOBEX_KEY, postJson, startPlatform, testTree } from '../support/start-platform.ts'
import { GLOBEX_TOKENS, MiB, startTransit, type TransitWorld } from '../support/transit-platform.ts'

/** What is asked in JSON and passed through, and how answers come back: as the engine wrote them, as fast as they are read. */

let world: TransitWorld
let client: OpenAI

beforeAll(async () => {
  world = await startTransit()
  client = new OpenAI({ baseURL: world.platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => world.close())
afterEach(() => world.isFree())

const post = (path: string, body: unknown, headers = {}) => postJson(world.url(path), body, headers)
const speech = { model: 'tts', input: 'A weir holds the water.', voice: 'alloy' }
const lastSeen = () => world.engine.seen.at(-1)!
const settledOf = (response: Response) => world.platform.settled(response.headers.get('x-request-id') ?? '')
const answersIn =
  (type: string, body: Buffer | string) =>
  async ({ res, readAll }: PassedCall) => {
    await readAll()
    res.writeHead(200, { 'content-type': type }).end(body)
  }

describe('OpenAI’s own client', () => {
  it('gets speech, byte for byte', async () => {
    const sound = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31) % 256))
    world.engine.next(answersIn('audio/mpeg', sound))
    const response = await client.audio.speech.create({ ...speech, response_format: 'mp3' })
    expect(response.headers.get('content-type')).toBe('audio/mpeg')
    expect(Buffer.from(await response.arrayBuffer()).equals(sound)).toBe(true)
    expect(JSON.parse(lastSeen().body!.begin)).toEqual({ ...speech, response_format: 'mp3' })
  })

  it('gets a transcript, with the file in front of the model', async () => {
    const file = await toFile(Buffer.alloc(300_000, 'la'), 'song.wav', { type: 'audio/wav' })
    const { text } = await client.audio.transcriptions.create({ file, model: 'whisper-1' })
    expect(text).toBe('a weir')
    expect(lastSeen().body?.begin).toContain('filename="song.wav"')
  })

  it('gets a transcript as a stream of events', async () => {
    const frames = ['{"type":"transcript.text.delta","delta":"a "}', '{"type":"transcript.text.done","text":"a weir"}']
    const events = [...frames, '[DONE]'].map((frame) => `data: ${frame}\n\n`).join('')
    world.engine.next(answersIn('text/event-stream', events))
    const file = await toFile(Buffer.alloc(1_000, 'la'), 'song.wav')
    const seen: string[] = []
    const stream = await client.audio.transcriptions.create({ file, model: 'whisper', stream: true })
    for await (const event of stream) seen.push(event.type)
    expect(seen).toEqual(['transcript.text.delta', 'transcript.text.done'])
  })

  it('gets pictures, and changes them', async () => {
    const b64_json = Buffer.alloc(5 * MiB, 'weir').toString('base64')
    world.engine.next(takes({ created: 1, data: [{ b64_json }] }))
    const made = await client.images.generate({ model: 'flux', prompt: 'a weir' })
    expect(made.data?.[0]?.b64_json).toBe(b64_json)
    world.engine.next(takes({ created: 1, data: [{ b64_json: 'AAAA' }] }))
    const image = await toFile(Buffer.alloc(2 * MiB, 'weir'), 'weir.png', { type: 'image/png' })
    const edited = await client.images.edit({ model: 'flux', image, prompt: 'at night' })
    expect(edited.data?.[0]?.b64_json).toBe('AAAA')
    expect(lastSeen().path).toBe('/v1/images/edits')
  })
})

describe('an endpoint that is passed through', () => {
  it.each([
    ['/v1/rerank', '/v1/rerank', { model: 'reranker', query: 'weir', documents: ['a dam', 'a dog'] }],
    ['/rerank', '/v1/rerank', { query: 'weir', documents: ['a dam', 'a dog'] }],
    ['/v1/score', '/v1/score', { model: 'reranker', text_1: 'weir', text_2: ['a dam'] }],
    ['/tokenize', '/tokenize', { model: 'llama', prompt: 'a weir' }],
    ['/detokenize', '/detokenize', { model: 'llama', tokens: [1, 2] }],
  ])('%s reaches %s', async (path, enginePath, body) => {
    world.engine.next(takes({ results: [] }))
    const response = await post(path, body)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ results: [] })
    expect(lastSeen().path).toBe(enginePath)
    expect(JSON.parse(lastSeen().body!.begin)).toMatchObject(body)
    expect(await settledOf(response)).toMatchObject({ outcome: 'completed' })
  })

  it('takes the body as it came where the model has the same name at the engine', async () => {
    const body = '{"model":"tts",  "input":"1","speed":1.0,"big":12345678901234567890}'
    expect((await post('/v1/audio/speech', body)).status).toBe(200)
    expect(lastSeen().body?.begin).toBe(body)
  })

  it('is for models that serve it, and no other endpoint is for them', async () => {
    const refused = await post('/v1/audio/speech', { model: 'llama', input: 'x' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: { code: 'model_not_supported', param: 'model' } })
    const chat = await post('/v1/chat/completions', { model: 'tts', messages: [{ role: 'user', content: 'hi' }] })
    expect(chat.status).toBe(400)
    expect(JSON.stringify(await chat.json())).toContain('/v1/audio')
  })

  it('asks for the model where several serve it', async () => {
    const refused = await post('/v1/audio/speech', { input: 'x' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: { code: 'missing_required_parameter', param: 'model' } })
  })

  it.each([
    ['no object', '[1]'],
    ['no JSON', '{"model":'],
    ['a model that is no text', '{"model": 7}'],
  ])('answers %s with 400', async (_what, body) => {
    expect((await post('/v1/rerank', body)).status).toBe(400)
  })
})

describe('budgets', () => {
  it('count pictures by the thousand, and refuse what does not fit', async () => {
    const ask = () => post('/v1/images/generations', { prompt: 'a weir', n: 2 }, authorization(GLOBEX_KEY))
    const served = await ask()
    expect(served.status).toBe(200)
    const { usage } = await settledOf(served)
    expect(usage.promptTokens).toBeGreaterThan(2_000)
    expect(usage.promptTokens).toBeLessThan(GLOBEX_TOKENS)
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limit_tokens' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('count what the engine says that it used', async () => {
    world.engine.next(takes({ results: [], usage: { total_tokens: 77 } }))
    const response = await post('/v1/rerank', { query: 'weir', documents: ['a dam'] })
    expect((await settledOf(response)).usage).toEqual({ promptTokens: 77, cachedTokens: 0, outputTokens: 0 })
  })
})

describe('an engine', () => {
  it.each([400, 404, 413, 422])('that answers %i has its answer kept', async (status) => {
    const body = '{"error":{"message":"no such voice","type":"odd","param":"voice","code":"voice_unknown"}}'
    world.engine.next(({ res }) => {
      res.writeHead(status, { 'content-type': 'application/problem+json' }).end(body)
    })
    const response = await post('/v1/audio/speech', speech)
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.text()).toBe(body)
    expect(await settledOf(response)).toMatchObject({ outcome: 'failed', attempts: 1 })
    expect(JSON.stringify(world.platform.entries)).not.toContain('voice_unknown')
  })

  it('that does not know us is told to the operator and not to the client', async () => {
    world.engine.next(({ res }) => void res.writeHead(401).end('{"error":"Bearer sk-abcdefghijkl"}'))
    const response = await post('/v1/audio/speech', speech)
    expect(response.status).toBe(502)
    expect(await response.json()).toMatchObject({ error: { code: 'replica_denied' } })
  })

  it('that fails once is asked again, with the same body', async () => {
    world.engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(500).end()
    })
    const response = await post('/v1/audio/speech', speech)
    expect(response.status).toBe(200)
    expect((await settledOf(response)).attempts).toBe(2)
    const [first, second] = world.engine.seen.slice(-2)
    expect(second?.body?.hash).toBe(first?.body?.hash)
  })

  it('that breaks off in the middle of its answer breaks the client’s off too', async () => {
    world.engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(200, { 'content-type': 'audio/mpeg' })
      res.write(Buffer.alloc(100_000))
      await drained(res)
      res.destroy()
    })
    const response = await post('/v1/audio/speech', speech)
    expect(response.status).toBe(200)
    await expect(response.arrayBuffer()).rejects.toThrow(/terminated/)
    expect(await settledOf(response)).toMatchObject({ outcome: 'failed', attempts: 1 })
  })

  it('is as fast as its reader, and free when the reader leaves', async () => {
    let writtenBytes = 0
    let isGone = false
    world.engine.next(async ({ res, readAll }) => {
      await readAll()
      res.on('close', () => {
        isGone = !res.writableFinished
      })
      res.writeHead(200, { 'content-type': 'audio/mpeg' })
      const piece = Buffer.alloc(64 << 10)
      while (!isGone && writtenBytes < 256 * MiB) {
        writtenBytes += piece.length
        if (!res.write(piece)) await drained(res)
      }
      res.end()
    })
    const aborter = new AbortController()
    const response = await fetch(world.url('/v1/audio/speech'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization() },
      body: JSON.stringify(speech),
      signal: aborter.signal,
    })
    expect(response.status).toBe(200)
    let before = -1
    await eventually('the engine waits for the reader', async () => {
      const isStill = before === writtenBytes
      before = writtenBytes
      await new Promise((resolve) => setTimeout(resolve, 200))
      return isStill || undefined
    })
    expect(writtenBytes).toBeLessThan(64 * MiB)
    aborter.abort()
    await eventually('the engine sees it go', () => isGone || undefined)
    await world.isFree()
    expect(await settledOf(response)).toMatchObject({ outcome: 'cancelled', because: 'client-gone' })
  })
})

describe('a simulated engine behind a URL', () => {
  it('has its tokens counted through the gateway', async () => {
    const simulated = await InsideEngine.start('--model', 'sim', '--profile', 'h100-llama-8b')
    const backend = { kind: 'http-openai' }
    const platform = await startPlatform(
      testTree({
        models: [{ name: 'sim', transit: ['tokenize'] }],
        pools: [{ model: 'sim', backend, replicas: [`${simulated.url}/v1`] }],
      }),
    )
    const ask = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const response = await postJson(platform.baseURL.replace(/\/v1$/, path), body)
      expect(response.status).toBe(200)
      return (await response.json()) as Record<string, unknown>
    }
    const { tokens } = await ask('/tokenize', { prompt: 'a weir holds the water' })
    expect(await ask('/detokenize', { tokens })).toEqual({ prompt: 'a weir holds the water' })
    await platform.close()
    await simulated.stop()
  })
})
