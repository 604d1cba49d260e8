import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually, pause } from '../support/eventually.ts'
import { BOUNDARY, type FormAnswer, type LargeForm, sendForm } from '../support/large-form.ts'
import { authorization } from '../support/start-platform.ts'
import { MiB, makeKeyWith, startTransit, type TransitWorld } from '../support/transit-platform.ts'

/** Forms with files that are passed through: admitted, counted and cancelled like a chat, and never held in memory. */

let world: TransitWorld

beforeAll(async () => {
  world = await startTransit({ stalledReaderMs: 2_000 })
})
afterAll(() => world.close())
afterEach(() => world.isFree())

const form = (more: Partial<LargeForm> = {}): LargeForm => ({
  url: world.url('/v1/audio/transcriptions'),
  headers: authorization(),
  before: { model: 'whisper-1' },
  fileBytes: 3 * MiB,
  ...more,
})
const errorOf = ({ text }: FormAnswer): Record<string, unknown> =>
  (JSON.parse(text) as { error: Record<string, unknown> }).error
const lastSeen = () => world.engine.seen.at(-1)!
const idOf = ({ headers }: FormAnswer): string => String(headers['x-request-id'])

describe('a form with a file', () => {
  it('reaches the engine byte for byte where the model has the same name there', async () => {
    const answer = await sendForm(
      form({ url: world.url('/v1/images/edits'), before: { model: 'flux', prompt: 'a weir' } }),
    )
    expect(answer.status).toBe(200)
    expect(lastSeen()).toMatchObject({ path: '/v1/images/edits', body: { hash: answer.hash } })
  })

  it('has the engine’s own name for the model, and the length that follows from it', async () => {
    const answer = await sendForm(form({ before: { model: 'whisper-1', language: 'en' } }))
    expect(answer).toMatchObject({ status: 200, text: '{"text":"a weir"}' })
    const { body, headers, path } = lastSeen()
    expect(path).toBe('/v1/audio/transcriptions')
    expect(body?.begin).toContain('name="model"\r\n\r\norg/whisper\r\n')
    expect(body?.begin).toContain('name="language"\r\n\r\nen\r\n')
    expect(headers['content-length']).toBe(String(body?.bytes))
    expect(await world.platform.settled(idOf(answer))).toMatchObject({
      outcome: 'completed',
      model: 'whisper',
      attempts: 1,
      usage: { promptTokens: 3 * 1_024 + 1, outputTokens: 0 },
    })
  })

  it('may come in chunks, without its size', async () => {
    const answer = await sendForm(form({ isChunked: true }))
    expect(answer.status).toBe(200)
    expect(lastSeen().headers['transfer-encoding']).toBe('chunked')
    expect(lastSeen().body?.bytes).toBeGreaterThan(3 * MiB)
  })

  it('may name its model behind a file that is not large', async () => {
    const answer = await sendForm(form({ before: {}, after: { model: 'whisper-1' }, fileBytes: MiB / 2 }))
    expect(answer.status).toBe(200)
    expect(await world.platform.settled(idOf(answer))).toMatchObject({ model: 'whisper' })
  })

  it('that names its model behind a large file is refused, with advice', async () => {
    const answer = await sendForm(form({ before: {}, after: { model: 'whisper-1' } }))
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'missing_required_parameter', param: 'model' })
    expect(errorOf(answer)['message']).toContain('/v1/audio/transcriptions?model=NAME')
  })

  it('may name its model in the address', async () => {
    const answer = await sendForm(form({ url: world.url('/v1/audio/transcriptions?model=whisper-1'), before: {} }))
    expect(answer.status).toBe(200)
    expect(lastSeen().body?.begin).toMatch(/^--weir-7c1f\r\n.*name="model"\r\n\r\norg\/whisper\r\n--weir-7c1f\r\n/s)
  })

  it('needs no name where one model alone serves its endpoint', async () => {
    const answer = await sendForm(form({ url: world.url('/v1/images/variations'), before: {} }))
    expect(answer.status).toBe(200)
    expect(await world.platform.settled(idOf(answer))).toMatchObject({ model: 'flux' })
  })

  it.each([
    ['says more than is allowed', {}],
    ['turns out larger than is allowed', { isChunked: true }],
  ])('that %s gets 413', { timeout: 60_000 }, async (_what, more) => {
    const small = await startTransit({ uploadBytesMax: 2 * MiB })
    const answer = await sendForm({ ...form(more), url: small.url('/v1/audio/transcriptions') })
    expect(answer.status).toBe(413)
    expect(errorOf(answer)).toMatchObject({ code: 'request_too_large' })
    await small.isFree()
    await small.close()
  })

  it('gets the engine’s own refusal, while it is still being sent too', async () => {
    const detail = { detail: [{ loc: ['body', 'file'], msg: 'not a sound' }] }
    world.engine.next(({ res }) => {
      res.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify(detail))
    })
    const answer = await sendForm(form({ fileBytes: 8 * MiB }))
    expect(answer).toMatchObject({ status: 422, text: JSON.stringify(detail) })
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(await world.platform.settled(idOf(answer))).toMatchObject({
      outcome: 'failed',
      refusal: { code: 'replica-rejected-request', blame: 'request' },
    })
  })

  it('is not sent a second time once bytes have gone', async () => {
    const calls = world.engine.seen.length
    world.engine.next(async ({ res, readAll }) => {
      await readAll()
      res.writeHead(500).end()
    })
    const answer = await sendForm(form())
    expect(answer.status).toBe(502)
    expect(world.engine.seen.length - calls).toBe(1)
  })

  it('of a key without the route gets 403, and no engine is asked', { timeout: 60_000 }, async () => {
    const calls = world.engine.seen.length
    const secret = await makeKeyWith(world, 'painter', { routes: ['images'] })
    const refused = await sendForm(form({ headers: authorization(secret) }))
    expect(refused.status).toBe(403)
    expect(errorOf(refused)).toMatchObject({ code: 'key_not_allowed', spillway: { terms: 'routes' } })
    expect(world.engine.seen.length).toBe(calls)
    const served = await sendForm(
      form({ url: world.url('/v1/images/edits'), before: { model: 'flux' }, headers: authorization(secret) }),
    )
    expect(served.status).toBe(200)
  })
})

describe('a form that is rubbish', () => {
  const post = (body: string, type = `multipart/form-data; boundary=${BOUNDARY}`) =>
    fetch(world.url('/v1/audio/transcriptions'), {
      method: 'POST',
      headers: { ...authorization(), 'content-type': type },
      body,
    })
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name=`
  it.each([
    ['has no boundary', 'anything', 'multipart/form-data'],
    ['does not begin with its boundary', 'x'.repeat(5_000)],
    ['is empty', ''],
    ['has a part without a name', `--${BOUNDARY}\r\n\r\nx\r\n--${BOUNDARY}--\r\n`],
    ['has headers without end', `--${BOUNDARY}\r\nx: ${'y'.repeat(20_000)}`],
    ['ends in the middle', `${head}"model"\r\n\r\nwhis`],
    ['has too many parts', `${head}"a"\r\n\r\n1\r\n`.repeat(100)],
  ])('and %s gets 400', async (_what, body, type?: string) => {
    const response = await post(body, type)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_file' } })
  })

  it('and says so in another type gets 415', async () => {
    expect((await post('a=1', 'application/x-www-form-urlencoded')).status).toBe(415)
  })

  it('and names a model that is none gets 404', async () => {
    const response = await post(`${head}"model"\r\n\r\nnobody\r\n--${BOUNDARY}--\r\n`)
    expect(response.status).toBe(404)
  })
})

describe('a client', () => {
  it('that leaves in the middle of its form ends the call at the engine', async () => {
    let isGone = false
    world.engine.next(async ({ req, readAll }) => {
      req.on('close', () => {
        isGone = !req.complete
      })
      await readAll()
    })
    const calls = world.engine.seen.length
    const onPiece = async (sent: number): Promise<boolean> => {
      if (sent < 4 * MiB) return true
      await eventually('the engine has been asked', () => world.engine.seen.length > calls || undefined)
      return false
    }
    await sendForm(form({ fileBytes: 64 * MiB, onPiece }))
    await eventually('the engine sees it go', () => isGone || undefined)
    await world.isFree()
    const ended = world.platform.entries.findLast((entry) => entry.kind === 'settled')
    // From its turn on it owes its price.
    const usage = { promptTokens: 64 * 1_024 + 1, cachedTokens: 0, outputTokens: 0 }
    expect(ended).toMatchObject({ outcome: 'cancelled', because: 'client-gone', usage })
  })

  it('that stops sending is told so, and frees the engine', async () => {
    const calls = world.engine.seen.length
    let stalled: Promise<boolean> | undefined
    const sent = sendForm(
      form({
        fileBytes: 8 * MiB,
        onPiece: (bytes) => {
          if (bytes < 2 * MiB) return Promise.resolve(true)
          stalled ??= eventually('the ticket has ended', () => endedBecause('sender-stalled')).then(() => true)
          return stalled
        },
      }),
    )
    await eventually('the engine has been asked', () => world.engine.seen.length > calls || undefined)
    // What is still sent afterwards is read and dropped, so that the client sees why.
    expect(errorOf(await sent)).toMatchObject({ code: 'request_too_slow' })
  })

  const endedBecause = (because: string): true | undefined =>
    world.platform.entries.some((entry) => entry.kind === 'settled' && entry.because === because) || undefined

  it('waits while its engine does not read, for longer than a body may otherwise take', async () => {
    let letGo: () => void = () => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    world.engine.next(async ({ res, readAll }) => {
      await held
      await readAll()
      res.writeHead(200, { 'content-type': 'text/plain' }).end('at last')
    })
    let sentBytes = 0
    const onPiece = async (bytes: number): Promise<boolean> => {
      sentBytes = bytes
      return true
    }
    const answer = sendForm(form({ fileBytes: 64 * MiB, onPiece }))
    // `server.requestTimeoutMs` is one second here.
    await pause(2_500)
    expect(sentBytes).toBeLessThan(32 * MiB)
    letGo()
    expect(await answer).toMatchObject({ status: 200, text: 'at last' })
    expect(lastSeen().body?.bytes).toBeGreaterThan(64 * MiB)
  })
})

describe('a form whose engine is not there', () => {
  it('is sent to another one, because nothing of it has gone yet', { timeout: 60_000 }, async () => {
    const other = await startTransit({}, ['http://127.0.0.1:1/v1'])
    const attempts: number[] = []
    for (let i = 0; i < 4; i++) {
      const answer = await sendForm({ ...form(), url: other.url('/v1/audio/transcriptions') })
      expect(answer.status).toBe(200)
      attempts.push((await other.platform.settled(idOf(answer))).attempts)
    }
    expect(Math.max(...attempts)).toBe(2)
    await other.close()
  })
})
