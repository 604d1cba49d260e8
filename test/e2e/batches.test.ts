import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually, pause } from '../support/eventually.ts'
import { ACME_KEY, GLOBEX_KEY, MODEL, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'

/** Jobs as OpenAI's own client asks for them, on the whole platform. */
let platform: TestPlatform
let acme: OpenAI
let globex: OpenAI

/** A receiver of webhooks. */
const SECRET = `whsec_${Buffer.from('a secret of this very test').toString('base64')}`
let receiver: WebhookReceiver

beforeAll(async () => {
  receiver = await WebhookReceiver.start()
  platform = await startPlatform(
    testTree({
      models: [
        { name: MODEL, aliases: ['gpt-4o-mini'] },
        { name: 'embed', kind: 'embedding' },
      ],
      pools: [MODEL, 'embed'].map((model) => ({ model, backend: { kind: 'simulated', profile: 'h100-llama-1b' } })),
      jobs: {
        webhooks: [{ tenant: 'acme', url: receiver.url, secret: SECRET }],
        webhookPrivateAddresses: true,
      },
    }),
  )
  acme = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  globex = new OpenAI({ baseURL: platform.baseURL, apiKey: GLOBEX_KEY, maxRetries: 0 })
  // The database is opened with its first use, which takes seconds.
  await acme.batches.list()
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await receiver.close()
})

interface Line {
  readonly custom_id: string
  readonly method?: string
  readonly url?: string
  readonly body?: object
}

const chatLine = (n: number, body: object = {}): Line => ({
  custom_id: `line-${n}`,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: MODEL, messages: [{ role: 'user', content: `Say ${n}.` }], max_tokens: 4, ...body },
})

async function upload(lines: readonly (Line | string)[], client = acme) {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  return client.files.create({ file: await toFile(Buffer.from(text), 'asked.jsonl'), purpose: 'batch' })
}

async function ended(id: string, client = acme): Promise<OpenAI.Batch> {
  return eventually(`${id} ends`, async () => {
    const batch = await client.batches.retrieve(id)
    if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) return batch
    await pause(20)
    return undefined
  })
}

async function run(
  lines: readonly (Line | string)[],
  endpoint: OpenAI.BatchCreateParams['endpoint'] = '/v1/chat/completions',
) {
  const { id } = await upload(lines)
  const made = await acme.batches.create({ input_file_id: id, endpoint, completion_window: '24h' })
  expect(made).toMatchObject({ object: 'batch', status: 'validating', input_file_id: id, endpoint })
  return ended(made.id)
}

async function linesOf(fileId: string | null | undefined, client = acme): Promise<Record<string, never>[]> {
  if (fileId === null || fileId === undefined) return []
  const text = await (await client.files.content(fileId)).text()
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, never>)
}

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `line-${n}`)

describe('a batch', () => {
  it('answers each line once, under its own name', async () => {
    const batch = await run(Array.from({ length: 40 }, (_, n) => chatLine(n)))
    expect(batch.status).toBe('completed')
    expect(batch.request_counts).toEqual({ total: 40, completed: 40, failed: 0 })
    expect(batch.error_file_id).toBeNull()
    const answers = await linesOf(batch.output_file_id)
    expect(new Set(answers.map((line) => line['custom_id']))).toEqual(new Set(names(40)))
    expect(answers).toHaveLength(40)
    for (const line of answers) {
      expect(line).toMatchObject({
        id: expect.stringMatching(/^batch_req_/) as string,
        error: null,
        response: { status_code: 200, body: { object: 'chat.completion', usage: { completion_tokens: 4 } } },
      })
    }
    const settled = platform.entries.filter((entry) => entry.kind === 'settled')
    expect(new Set(settled.map((entry) => 'band' in entry && entry.band))).toEqual(new Set(['offline']))
  })

  it('runs every kind of line that answers in one document', async () => {
    const cases = [
      ['/v1/completions', { model: MODEL, prompt: 'Hi', max_tokens: 2 }, 'text_completion'],
      ['/v1/embeddings', { model: 'embed', input: 'Hi' }, 'list'],
      ['/v1/responses', { model: MODEL, input: 'Hi', max_output_tokens: 16 }, 'response'],
    ] as const
    for (const [url, body, object] of cases) {
      const batch = await run([{ custom_id: 'one', method: 'POST', url, body }], url)
      expect([url, batch.status]).toEqual([url, 'completed'])
      const [line] = await linesOf(batch.output_file_id)
      expect(line).toMatchObject({ custom_id: 'one', response: { status_code: 200, body: { object } } })
    }
  })

  it('puts what a route refuses into the file of errors', async () => {
    const batch = await run([chatLine(0), chatLine(1, { n: 1_000 }), chatLine(2, { temperature: 'hot' })])
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 1, failed: 2 } })
    expect((await linesOf(batch.output_file_id)).map((line) => line['custom_id'])).toEqual(['line-0'])
    expect(await linesOf(batch.error_file_id)).toMatchObject([
      { custom_id: 'line-1', response: { status_code: 400, body: { error: { param: 'n' } } }, error: null },
      { custom_id: 'line-2', response: { status_code: 400, body: { error: { param: 'temperature' } } } },
    ])
  })

  it('keeps metadata and tells when its files end', async () => {
    const { id } = await upload([chatLine(0)])
    const made = await acme.batches.create({
      input_file_id: id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { night: 'run 7' },
      output_expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    const batch = await ended(made.id)
    expect(batch.metadata).toEqual({ night: 'run 7' })
    expect(batch.expires_at! - batch.created_at).toBe(86_400)
    const file = await acme.files.retrieve(batch.output_file_id!)
    expect(file).toMatchObject({ object: 'file', purpose: 'batch_output', status: 'processed' })
    expect(file.expires_at! - file.created_at).toBe(3_600)
  })
})

describe('the end of a batch', () => {
  it('is told to its tenant’s receiver, in words that OpenAI’s client checks', async () => {
    const good = await run([chatLine(0)])
    const bad = await run(['nonsense'])
    for (const [batch, type] of [
      [good, 'batch.completed'],
      [bad, 'batch.failed'],
    ] as const) {
      const call = await eventually('the receiver is told', () =>
        receiver.calls.find(({ body }) => body.includes(batch.id)),
      )
      const event = await acme.webhooks.unwrap(call.body, call.headers, SECRET)
      expect(event).toMatchObject({ object: 'event', type, data: { id: batch.id } })
    }
  })
})

describe('a file of lines is checked as a whole', () => {
  const CASES: readonly [string, readonly (Line | string)[], object][] = [
    ['not JSON', [chatLine(0), '{"custom_id":'], { code: 'invalid_json_line', line: 2 }],
    ['no object', ['[1]'], { code: 'invalid_json_line', line: 1 }],
    ['the same name twice', [chatLine(0), chatLine(0)], { code: 'duplicate_custom_id', line: 2, param: 'custom_id' }],
    ['another url', [{ ...chatLine(0), url: '/v1/embeddings' }], { code: 'mismatched_url', line: 1, param: 'url' }],
    ['streamed', [chatLine(0, { stream: true })], { code: 'streaming_not_supported', line: 1, param: 'body.stream' }],
    ['no name', [{ ...chatLine(0), custom_id: '' }], { code: 'invalid_custom_id', line: 1 }],
    ['no body', [{ ...chatLine(0), body: undefined as never }], { param: 'body', line: 1 }],
    ['another method', [{ ...chatLine(0), method: 'GET' }], { code: 'invalid_method', line: 1 }],
    ['an unknown model', [chatLine(0, { model: 'none' })], { code: 'model_not_found', line: 1, param: 'body.model' }],
    ['nothing', ['\n', ' '], { code: 'empty_file', line: null }],
  ]
  it.each(CASES)('%s', async (_, lines, fault) => {
    const batch = await run(lines)
    expect(batch).toMatchObject({ status: 'failed', output_file_id: null, errors: { object: 'list' } })
    expect(batch.errors?.data?.[0]).toMatchObject(fault)
    expect(batch.failed_at).toBeGreaterThan(0)
  })

  it('every mistake is told', async () => {
    const batch = await run([chatLine(0), 'x', chatLine(0), 'y'])
    expect(batch.errors?.data?.map(({ line }) => line)).toEqual([2, 3, 4])
  })
})

describe('who may see what', () => {
  it('shows a tenant its own, and nothing of another', async () => {
    const file = await upload([chatLine(0)])
    const made = await acme.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    })
    const batch = await ended(made.id)
    for (const id of [file.id, batch.output_file_id!]) {
      await expect(globex.files.retrieve(id)).rejects.toMatchObject({ status: 404 })
      await expect(globex.files.content(id)).rejects.toMatchObject({ status: 404 })
      await expect(globex.files.delete(id)).rejects.toMatchObject({ status: 404 })
    }
    await expect(globex.batches.retrieve(made.id)).rejects.toMatchObject({ status: 404, code: 'batch_not_found' })
    await expect(globex.batches.cancel(made.id)).rejects.toMatchObject({ status: 404 })
    const ask = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
    await expect(globex.batches.create(ask)).rejects.toMatchObject({ status: 400, param: 'input_file_id' })
    expect((await globex.batches.list()).data).toEqual([])
    expect((await globex.files.list({ purpose: 'batch' })).data).toEqual([])
  })

  it('refuses an endpoint that cannot be run, and a window that we do not know', async () => {
    const file = await upload([chatLine(0)])
    const ask = { input_file_id: file.id, endpoint: '/v1/audio/speech' as never, completion_window: '24h' as const }
    await expect(acme.batches.create(ask)).rejects.toMatchObject({ status: 400, param: 'endpoint' })
    const soon = { ...ask, endpoint: '/v1/chat/completions' as const, completion_window: '1h' as never }
    await expect(acme.batches.create(soon)).rejects.toMatchObject({ status: 400, param: 'completion_window' })
  })
})

describe('lists and files', () => {
  it('go page by page', async () => {
    const made: string[] = []
    for (let n = 0; n < 3; n++) {
      const { id } = await upload([chatLine(n)], globex)
      const ask = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
      made.push((await globex.batches.create(ask)).id)
    }
    const page = await globex.batches.list({ limit: 2 })
    expect(page.data.map(({ id }) => id)).toEqual(made.toReversed().slice(0, 2))
    expect(page.has_more).toBe(true)
    const all: string[] = []
    for await (const { id } of globex.batches.list({ limit: 1 })) all.push(id)
    expect(all).toEqual(made.toReversed())
    await expect(globex.batches.list({ after: 'batch_none' })).rejects.toMatchObject({ status: 400, param: 'after' })
    for (const id of made) await ended(id, globex)
  })

  it('give back a file as it was sent, until it is deleted', async () => {
    const text = `${JSON.stringify(chatLine(0))}\n${JSON.stringify(chatLine(1))}`
    const file = await acme.files.create({
      file: await toFile(Buffer.from(text), 'as it was.jsonl'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 7_200 },
    })
    expect(file).toMatchObject({ bytes: text.length, filename: 'as it was.jsonl', purpose: 'batch' })
    expect(file.expires_at! - file.created_at).toBe(7_200)
    expect((await acme.files.content(file.id)).headers.get('x-content-type-options')).toBe('nosniff')
    expect(await (await acme.files.content(file.id)).text()).toBe(text)
    expect((await acme.files.list({ purpose: 'batch' })).data.map(({ id }) => id)).toContain(file.id)
    expect(await acme.files.delete(file.id)).toMatchObject({ id: file.id, deleted: true })
    await expect(acme.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
  })

  it('take a file of several megabytes whose purpose comes behind it', async () => {
    const line = JSON.stringify(chatLine(0, { user: 'x'.repeat(10_000) }))
    const text = `${line}\n`.repeat(400)
    const form = new FormData()
    form.set('file', new File([text], 'large.jsonl'))
    form.set('purpose', 'batch')
    const sent = await fetch(`${platform.baseURL}/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ACME_KEY}` },
      body: form,
    })
    const file = (await sent.json()) as { id: string; bytes: number }
    expect(file.bytes).toBe(text.length)
    expect(await (await acme.files.content(file.id)).text()).toBe(text)
  })
})
