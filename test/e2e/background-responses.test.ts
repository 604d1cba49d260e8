import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { backgroundTree, held, INITECH_KEY } from '../support/background-responses.ts'
import { TestFolder } from '../support/child.ts'
import { eventually, pause } from '../support/eventually.ts'
import { answers, FakeUpstream, fails } from '../support/fake-upstream.ts'
import { checkedResponse } from '../support/responses-shapes.ts'
import { ACME_KEY, GLOBEX_KEY, MODEL, startPlatform, type TestPlatform } from '../support/start-platform.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'

/** Responses that nobody waits for, with OpenAI's own client. A restart is in `background-responses.long.test.ts`. */

const SECRET = `whsec_${Buffer.from('a secret of this very test').toString('base64')}`
let receiver: WebhookReceiver
let upstream: FakeUpstream
let platform: TestPlatform
let acme: OpenAI
const folder = new TestFolder()
const clientOf = (apiKey: string) => new OpenAI({ baseURL: platform.baseURL, apiKey, maxRetries: 0 })

async function start(): Promise<void> {
  platform = await startPlatform(
    backgroundTree(upstream.url, {
      jobs: {
        openMax: 2,
        webhooks: [{ tenant: 'acme', url: receiver.url, secret: SECRET }],
        webhookPrivateAddresses: true,
      },
      screening: { pii: 'redact', secrets: 'block' },
      store: { path: `${folder.path}/store` },
    }),
  )
  acme = clientOf(ACME_KEY)
  // The database is opened with its first use, which takes seconds.
  await acme.batches.list()
}

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  receiver = await WebhookReceiver.start()
  await start()
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await upstream.close()
  await receiver.close()
  folder.remove()
})
beforeEach(() => {
  upstream.behaviour = answers()
  upstream.seen.length = 0
})

const ask = { model: MODEL, input: 'Hi.', background: true } as const

const until = (id: string, ...statuses: string[]) =>
  eventually(`${id} is ${statuses.join(' or ')}`, async () => {
    const response = await acme.responses.retrieve(id)
    if (statuses.includes(String(response.status))) return response
    await pause(20)
    return undefined
  })

const ended = (id: string) => until(id, 'completed', 'failed', 'incomplete', 'cancelled')

/** A response is stored a moment before its job ends: whoever asks for the next at once may be told that there is no room. */
const madeWithRoom = () => eventually('there is room', () => acme.responses.create(ask).catch(() => undefined))

describe('a response in the background', () => {
  it('is queued at once, is in progress, and is completed', async () => {
    const { behaviour, open } = held()
    upstream.behaviour = behaviour
    const { output_text: _, ...queued } = await acme.responses.create({ ...ask, metadata: { run: '7' } })
    const asQueued = { status: 'queued', background: true, store: true, output: [], metadata: { run: '7' } }
    expect(checkedResponse(queued)).toMatchObject(asQueued)
    await eventually('the engine is asked', () => upstream.seen.length === 1)
    expect(await acme.responses.retrieve(queued.id)).toMatchObject({ status: 'in_progress', output: [] })
    open()
    const { output_text: text, ...done } = await ended(queued.id)
    expect(text).not.toBe('')
    const { id, created_at, metadata } = queued
    const asDone = { id, created_at, metadata, status: 'completed', background: true, store: true }
    expect(checkedResponse(done)).toMatchObject(asDone)
    expect(done.usage?.output_tokens).toBeGreaterThan(0)
    // It is no batch, and has left no file.
    expect((await acme.batches.list()).data).toEqual([])
    await expect(acme.batches.retrieve(id)).rejects.toMatchObject({ status: 404 })
    expect((await acme.files.list()).data).toEqual([])
    await expect(clientOf(GLOBEX_KEY).responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    // A conversation goes on from it, and its items are listed.
    expect((await acme.responses.inputItems.list(id)).data).toMatchObject([{ content: [{ text: 'Hi.' }] }])
    await acme.responses.create({ model: MODEL, input: 'And?', previous_response_id: id })
    expect(upstream.seen.at(-1)?.body['messages']).toHaveLength(3)
  }, 60_000)

  it('can be cancelled, more than once, and its engine is let go', async () => {
    const { behaviour, left } = held()
    upstream.behaviour = behaviour
    const { id } = await acme.responses.create(ask)
    await eventually('the engine is asked', () => upstream.seen.length === 1)
    const early = acme.responses.create({ model: MODEL, input: 'And?', previous_response_id: id })
    await expect(early).rejects.toMatchObject({ status: 400, param: 'previous_response_id' })
    expect(await acme.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    expect(await acme.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    await left
    expect(await acme.responses.retrieve(id)).toMatchObject({ id, status: 'cancelled', output: [] })
    upstream.behaviour = answers()
    const whole = await acme.responses.create({ model: MODEL, input: 'Hi.' })
    await expect(acme.responses.cancel(whole.id)).rejects.toMatchObject({ status: 400 })
  }, 60_000)

  it('that has ended stays as it is when it is cancelled', async () => {
    const { id } = await acme.responses.create(ask)
    await ended(id)
    expect(await acme.responses.cancel(id)).toMatchObject({ id, status: 'completed' })
  }, 60_000)

  it('is gone for good when it is deleted while it runs', async () => {
    const { behaviour, left } = held()
    upstream.behaviour = behaviour
    const { id } = await acme.responses.create(ask)
    await eventually('the engine is asked', () => upstream.seen.length === 1)
    await acme.responses.delete(id)
    await left
    await expect(acme.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  }, 60_000)

  it('fails with the error that a client would have got', async () => {
    upstream.behaviour = ({ res }) => {
      const error = { message: 'No.', type: 'invalid_request_error', param: null, code: null }
      res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
    }
    const { id } = await acme.responses.create(ask)
    const { output_text: _, ...failed } = await ended(id)
    expect(checkedResponse(failed)).toMatchObject({ id, status: 'failed', error: { code: 'invalid_prompt' } })
  }, 60_000)

  it('is refused where too many have not ended', async () => {
    const { behaviour, open } = held()
    upstream.behaviour = behaviour
    const ids = [(await madeWithRoom()).id, (await madeWithRoom()).id]
    await expect(acme.responses.create(ask)).rejects.toMatchObject({ status: 429, code: 'too_many_batches' })
    open()
    for (const id of ids) expect(await ended(id)).toMatchObject({ status: 'completed' })
    const { id } = await madeWithRoom()
    expect(await ended(id)).toMatchObject({ status: 'completed' })
  }, 60_000)

  it('is screened as any request', async () => {
    const { id } = await acme.responses.create({ ...ask, input: 'Write to jane.doe@example.com.' })
    expect(await ended(id)).toMatchObject({ status: 'completed' })
    expect(upstream.seen).toHaveLength(1)
    expect(upstream.seen[0]?.text).not.toContain('jane.doe')
    expect(JSON.stringify(await acme.responses.inputItems.list(id))).not.toContain('jane.doe')
    const secret = acme.responses.create({ ...ask, input: `My key is AKIA${'IOSFODNN7'}QWERTYU.` })
    await expect(secret).rejects.toMatchObject({ status: 400, code: 'content_filter' })
    expect(upstream.seen).toHaveLength(1)
  }, 60_000)

  it('is refused where it could not be read, and where it would be streamed', async () => {
    const poor = clientOf(INITECH_KEY).responses.create(ask)
    await expect(poor).rejects.toMatchObject({ status: 400, param: 'background', code: 'unsupported_parameter' })
    await expect(acme.responses.create({ ...ask, store: false })).rejects.toMatchObject({ status: 400, param: 'store' })
    await expect(acme.responses.create({ ...ask, stream: true })).rejects.toMatchObject({
      status: 400,
      param: 'stream',
    })
    await expect(acme.responses.create({ ...ask, model: 'gpt-9' })).rejects.toMatchObject({ status: 404 })
    const large = acme.responses.create({ ...ask, input: 'a '.repeat(600_000) })
    await expect(large).rejects.toMatchObject({ status: 413 })
    expect(upstream.seen).toEqual([])
  }, 60_000)
})

describe('the end of a response in the background', () => {
  const toldOf = (id: string) =>
    eventually(`the receiver is told of ${id}`, async () => {
      const call = receiver.calls.find(({ body }) => body.includes(id))
      return call && acme.webhooks.unwrap(call.body, call.headers, SECRET)
    })

  it.each([
    ['completed', answers()],
    ['incomplete', answers({ finishReason: 'length' })],
    ['failed', fails(400, { error: { message: 'no', type: 'x', param: null, code: null } })],
  ] as const)('is told to its tenant’s receiver once it can be read: %s', async (status, behaviour) => {
    upstream.behaviour = behaviour
    const { id } = await madeWithRoom()
    expect(await toldOf(id)).toMatchObject({ object: 'event', type: `response.${status}`, data: { id } })
    expect((await acme.responses.retrieve(id)).status).toBe(status)
  })

  it('is told when it was cancelled', async () => {
    const { behaviour } = held()
    upstream.behaviour = behaviour
    const { id } = await madeWithRoom()
    await eventually('the engine is asked', () => upstream.seen.length === 1)
    await acme.responses.cancel(id)
    expect(await toldOf(id)).toMatchObject({ type: 'response.cancelled', data: { id } })
  })

  it('is told to nobody else’s receiver, and each once', async () => {
    const other = await clientOf(GLOBEX_KEY).responses.create(ask)
    await eventually(
      'it has ended',
      async () => (await clientOf(GLOBEX_KEY).responses.retrieve(other.id)).status === 'completed',
    )
    const { id } = await madeWithRoom()
    await toldOf(id)
    expect(receiver.calls.filter(({ body }) => body.includes(other.id))).toEqual([])
    expect(receiver.calls.filter(({ body }) => body.includes(id))).toHaveLength(1)
  })
})
