import OpenAI, { NotFoundError } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { checked } from '../support/openai-shapes.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Stored chat completions, judged by the official SDK. Texts are canaries: they may be in the store and nowhere else. */

const ADMIN_KEY = 'sk-test-admin'
const SHORT_KEY = 'sk-test-short'
const POOR_KEY = 'sk-test-poor'
/** A model whose engine the tests script. */
const REMOTE = 'remote'
const CANARY = 'canary-7f3a'

const tenant = (id: string, key: string, more: object = {}) => ({
  id,
  slo: 'patient',
  keys: [{ id: `${id}-1`, hash: hashKey(key) }],
  ...more,
})

const TENANTS = [
  tenant('acme', ACME_KEY, { storing: {} }),
  tenant('globex', GLOBEX_KEY, { storing: { countMax: 3 } }),
  tenant('short', SHORT_KEY, { storing: { ttlS: 1 } }),
  tenant('poor', POOR_KEY),
]

const ADMIN = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }

let platform: TestPlatform
/** The engine of `REMOTE`. */
let upstream: FakeUpstream
let acme: OpenAI
let globex: OpenAI

const clientOf = (key: string): OpenAI => new OpenAI({ baseURL: platform.baseURL, apiKey: key, maxRetries: 0 })

const ask = (more: object = {}) => ({
  model: MODEL,
  messages: [{ role: 'user' as const, content: `${CANARY}: what is a dam?` }],
  max_tokens: 8,
  store: true,
  ...more,
})

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  platform = await startPlatform(
    testTree({
      // Headers leave an engine that is slow to begin after this time.
      server: { keepAliveMs: 20 },
      tenants: TENANTS,
      admin: ADMIN,
      models: [{ name: MODEL, aliases: ['gpt-4o-mini'] }, { name: REMOTE }],
      pools: [
        { model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
        { model: REMOTE, backend: { kind: 'http-openai', timeoutMs: 5_000 }, replicas: [upstream.url] },
      ],
    }),
  )
  acme = clientOf(ACME_KEY)
  globex = clientOf(GLOBEX_KEY)
  // The first use makes the database.
  await acme.chat.completions.list()
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await upstream?.close()
})

describe('a stored completion', () => {
  it('is there with the next request, as it was answered, whole and streamed', async () => {
    const metadata = { topic: 'dams', lang: 'en "ü"' }
    const { data: whole, response } = await acme.chat.completions.create(ask({ metadata, seed: 3 })).withResponse()
    expect(response.headers.get('x-spillway-stored')).toBe('true')
    const found = checked('chat', await acme.chat.completions.retrieve(whole.id))
    expect(found).toMatchObject({ ...JSON.parse(JSON.stringify(whole)), metadata, seed: 3, tools: null })
    const stream = acme.chat.completions.stream(ask({ seed: 3, stream: true, stream_options: { include_usage: true } }))
    const final = await stream.finalChatCompletion()
    const kept = checked('chat', await acme.chat.completions.retrieve(final.id))
    expect(kept.choices[0]!.message.content).toBe(whole.choices[0]!.message.content)
    expect([kept.usage, kept.metadata, kept.object]).toEqual([final.usage, {}, 'chat.completion'])
  })

  it('has its messages, with parts apart', async () => {
    const parts = [{ type: 'text' as const, text: 'look' }]
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: parts },
    ]
    const { id } = await acme.chat.completions.create(ask({ messages }))
    const page = await acme.chat.completions.messages.list(id)
    expect(page.data).toMatchObject([
      { id: `${id}-0`, role: 'system', content: 'Be brief.', content_parts: null, name: null },
      { id: `${id}-1`, role: 'user', content: null, content_parts: parts },
    ])
    const one = await acme.chat.completions.messages.list(id, { limit: 1, order: 'desc' })
    expect([one.data[0]?.id, one.has_more]).toEqual([`${id}-1`, true])
    const rest = []
    for await (const message of one) rest.push(message.id)
    expect(rest).toEqual([`${id}-1`, `${id}-0`])
  })

  it('can be changed and deleted', async () => {
    const { id } = await acme.chat.completions.create(ask({ metadata: { a: '1' } }))
    const changed = checked('chat', await acme.chat.completions.update(id, { metadata: { b: '2' } }))
    expect(changed.metadata).toEqual({ b: '2' })
    expect((await acme.chat.completions.retrieve(id)).metadata).toEqual({ b: '2' })
    expect(await acme.chat.completions.delete(id)).toMatchObject({
      id,
      deleted: true,
      object: 'chat.completion.deleted',
    })
    await expect(acme.chat.completions.retrieve(id)).rejects.toThrow(NotFoundError)
    await expect(acme.chat.completions.delete(id)).rejects.toMatchObject({ status: 404, code: 'answer_not_found' })
  })

  it('is of its tenant alone', async () => {
    const { id } = await acme.chat.completions.create(ask({ metadata: { whose: 'acme' } }))
    const unknown = await globex.chat.completions.retrieve('chatcmpl-unknown').catch((error: unknown) => error)
    for (const tried of [
      () => globex.chat.completions.retrieve(id),
      () => globex.chat.completions.update(id, { metadata: {} }),
      () => globex.chat.completions.delete(id),
      () => globex.chat.completions.messages.list(id),
      () => globex.chat.completions.list({ after: id }),
    ]) {
      const error = (await (tried() as Promise<unknown>).catch((reason: unknown) => reason)) as NotFoundError
      expect([error.status, error.code, error.type]).toEqual(
        ['status', 'code', 'type'].map((name) => (unknown as Record<string, unknown>)[name]),
      )
      expect(error.message.replaceAll(id, '')).toBe((unknown as Error).message.replaceAll('chatcmpl-unknown', ''))
    }
    expect((await acme.chat.completions.retrieve(id)).metadata).toEqual({ whose: 'acme' })
    const listed = await globex.chat.completions.list({ metadata: { whose: 'acme' } })
    expect(listed.data).toEqual([])
  })
})

describe('the list of stored completions', () => {
  it('goes page by page, in order, by model and metadata', async () => {
    const ids: string[] = []
    for (const n of [1, 2, 3]) {
      const metadata = { list: 'yes', n: `${n}` }
      const model = n === 2 ? 'gpt-4o-mini' : MODEL
      ids.push((await acme.chat.completions.create(ask({ model, metadata }))).id)
    }
    const all = []
    for await (const { id } of acme.chat.completions.list({ metadata: { list: 'yes' }, limit: 2 })) all.push(id)
    expect(all).toEqual(ids)
    const last = await acme.chat.completions.list({ metadata: { list: 'yes' }, limit: 2, order: 'desc' })
    expect([last.data.map(({ id }) => id), last.has_more]).toEqual([[ids[2], ids[1]], true])
    checked('chat', last.data[0])
    const aliased = await acme.chat.completions.list({ model: 'gpt-4o-mini' })
    expect(aliased.data.map(({ id }) => id)).toEqual([ids[1]])
    const third = await acme.chat.completions.list({ metadata: { list: 'yes', n: '3' } })
    expect(third.data.map(({ id }) => id)).toEqual([ids[2]])
  })

  it('keeps the newest where the tenant is at its bound', async () => {
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await globex.chat.completions.create(ask())).id)
    const { data } = await globex.chat.completions.list()
    expect(data.map(({ id }) => id)).toEqual(ids.slice(2))
  })
})

describe('an answer that is not stored', () => {
  it('is served, and says why', async () => {
    const poor = clientOf(POOR_KEY)
    const { data, response } = await poor.chat.completions.create(ask()).withResponse()
    expect(data.choices).toHaveLength(1)
    expect(response.headers.get('x-spillway-stored')).toBe('false')
    expect(response.headers.get('x-spillway-not-stored')).toBe('not-allowed')
    await expect(poor.chat.completions.retrieve(data.id)).rejects.toThrow(NotFoundError)
    expect((await poor.chat.completions.list()).data).toEqual([])
  })

  it('is one that nobody asked to store', async () => {
    const { data, response } = await acme.chat.completions.create(ask({ store: false })).withResponse()
    expect(response.headers.get('x-spillway-stored')).toBeNull()
    await expect(acme.chat.completions.retrieve(data.id)).rejects.toThrow(NotFoundError)
  })

  it('is gone when its time is over', async () => {
    const short = clientOf(SHORT_KEY)
    const { id } = await short.chat.completions.create(ask())
    await eventually('it has expired', async () => {
      const found = await short.chat.completions.retrieve(id).catch((error: unknown) => error)
      return found instanceof NotFoundError
    })
    expect((await short.chat.completions.list()).data).toEqual([])
  })

  it('is refused with metadata that no object may have', async () => {
    const tooMany = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v']))
    for (const metadata of [
      tooMany,
      { k: 'v'.repeat(513) },
      { ['k'.repeat(65)]: 'v' },
      { k: 1 },
      { k: '\0' },
      'text',
    ]) {
      const error = (await acme.chat.completions
        .create(ask({ metadata }) as never)
        .catch((reason: unknown) => reason)) as {
        status: number
        param: string
      }
      expect([error.status, String(error.param).split(/[.[]/)[0]]).toEqual([400, 'metadata'])
    }
    const { id } = await acme.chat.completions.create(ask())
    await expect(acme.chat.completions.update(id, { metadata: tooMany })).rejects.toMatchObject({ status: 400 })
    await expect(acme.chat.completions.update(id, {} as never)).rejects.toMatchObject({ status: 400 })
  })
})

describe('storing and the rest of the platform', () => {
  it('erases the answers of a tenant that is removed, so that its name begins anew', async () => {
    const admin = async (method: string, path: string, body: object): Promise<Record<string, unknown>> => {
      const response = await fetch(`${platform.address}/admin/v1/${path}`, {
        method,
        headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
        body: JSON.stringify({ because: 'a test', ...body }),
      })
      return { status: response.status, ...((await response.json()) as object) }
    }
    await admin('POST', 'orgs', { id: 'org', slos: ['patient'] })
    const make = async (): Promise<OpenAI> => {
      expect(await admin('POST', 'tenants', { id: 'late', orgId: 'org', storing: { ttlS: 3_600 } })).toMatchObject({
        status: 200,
      })
      const { secret } = await admin('POST', 'keys', { id: 'late-1', tenantId: 'late' })
      return clientOf(String(secret))
    }
    const before = await make()
    const { id } = await before.chat.completions.create(ask())
    expect((await before.chat.completions.list()).data).toHaveLength(1)
    expect(await admin('PATCH', 'tenants/late', { storing: { countMax: 0 } })).toMatchObject({ status: 400 })
    await admin('DELETE', 'tenants/late', {})
    await eventually('the answers are erased', () =>
      platform.entries.some((entry) => entry.kind === 'archive-erased' && entry.because === 'tenant-removed'),
    )
    const after = await make()
    await expect(after.chat.completions.retrieve(id)).rejects.toThrow(NotFoundError)
    expect((await after.chat.completions.list()).data).toEqual([])
  })

  it('puts no text of an answer or its request into the journal or to the operator', async () => {
    const { id, choices } = await acme.chat.completions.create(ask({ metadata: { secret: CANARY } }))
    await acme.chat.completions.retrieve(id)
    const journal = JSON.stringify(platform.entries)
    expect(journal).toContain('archive-written')
    for (const said of [CANARY, choices[0]!.message.content!]) {
      expect(journal).not.toContain(said)
      expect(platform.printed).not.toContain(said)
    }
  })
})

describe('an engine behind a store', () => {
  it('is stored as it wrote its answer, whole and streamed', async () => {
    const sign = { created: 1_700_000_001, model: 'm-2026', system_fingerprint: 'fp_own', service_tier: 'flex' }
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 2,
      total_tokens: 11,
      completion_tokens_details: { reasoning_tokens: 1 },
    }
    const beside = { index: 0, finish_reason: 'stop', stop_reason: 13, logprobs: null }
    upstream.behaviour = ({ body, res }) => {
      if (body['stream'] !== true) {
        const message = { role: 'assistant', content: 'a weir', refusal: null, own: { x: 1 } }
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(
          JSON.stringify({ id: 'x', object: 'chat.completion', ...sign, choices: [{ message, ...beside }], usage }),
        )
        return
      }
      const frame = (more: object) =>
        `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', ...sign, ...more })}\n\n`
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(frame({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }))
      res.write(frame({ choices: [{ index: 0, delta: { content: 'a ' }, finish_reason: null }] }))
      res.write(frame({ choices: [{ delta: { content: 'weir', own: { x: 1 } }, ...beside }] }))
      res.end(`${frame({ choices: [], usage })}data: [DONE]\n\n`)
    }
    const kept = []
    for (const stream of [false, true]) {
      const said = await postJson(`${platform.baseURL}/chat/completions`, ask({ model: REMOTE, stream }))
      const id = /chatcmpl-[0-9a-f]+/.exec(await said.text())?.[0] ?? ''
      kept.push(await acme.chat.completions.retrieve(id))
    }
    for (const { id: _id, ...answer } of kept) {
      expect(answer).toMatchObject({
        ...sign,
        usage,
        choices: [{ ...beside, message: { content: 'a weir', own: { x: 1 } } }],
      })
    }
  })

  it('that is slow to begin: the headers that leave before its answer say whether it is stored', async () => {
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    upstream.behaviour = async (asked) => {
      await released
      await answers()(asked)
    }
    const begin = (path: string, body: object, key: string): Promise<Response> =>
      postJson(`${platform.baseURL}/${path}`, { ...body, stream: true }, authorization(key))
    const response = { model: REMOTE, input: 'Hi.', truncation: 'auto' }
    try {
      // Each has its headers while the engine has not said a word.
      const replies = [
        await begin('chat/completions', ask({ model: REMOTE }), ACME_KEY),
        await begin('chat/completions', ask({ model: REMOTE }), POOR_KEY),
        await begin('responses', response, ACME_KEY),
        await begin('responses', response, POOR_KEY),
      ]
      const told = replies.map(({ headers }) =>
        ['model', 'stored', 'not-stored', 'ignored'].map((name) => headers.get(`x-spillway-${name}`)),
      )
      expect(told).toEqual([
        [null, 'true', null, null],
        [null, 'false', 'not-allowed', null],
        [null, 'true', null, 'truncation'],
        [null, 'false', 'not-allowed', 'truncation'],
      ])
      release()
      for (const reply of replies) expect(await reply.text()).toContain('weir')
    } finally {
      release()
    }
  })

  it('never sees the wish to store, and its tool calls are stored whole', async () => {
    const piece = (delta: object, finish: string | null = null) => ({
      id: 'x',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
    const call = (index: number, more: object) => piece({ tool_calls: [{ index, ...more }] })
    const frames = [
      piece({ role: 'assistant', content: null }),
      call(0, { id: 'call_1', type: 'function', function: { name: 'dam', arguments: '' } }),
      call(0, { function: { arguments: '{"height":' } }),
      call(1, { id: 'call_2', type: 'function', function: { name: 'weir', arguments: '{}' } }),
      call(0, { function: { arguments: '12}' } }),
      piece({}, 'tool_calls'),
    ]
    upstream.behaviour = ({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(`${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`)
    }
    const stream = acme.chat.completions.stream(ask({ model: REMOTE, metadata: { a: 'b' }, stream: true }))
    const final = await stream.finalChatCompletion()
    const kept = await acme.chat.completions.retrieve(final.id)
    expect(kept.choices[0]!.message.tool_calls).toMatchObject([
      { id: 'call_1', type: 'function', function: { name: 'dam', arguments: '{"height":12}' } },
      { id: 'call_2', function: { name: 'weir', arguments: '{}' } },
    ])
    expect(kept.choices[0]!.finish_reason).toBe('tool_calls')
    const { body } = upstream.seen.at(-1)!
    expect(body).toHaveProperty('messages')
    expect(body).not.toHaveProperty('store')
    expect(body).not.toHaveProperty('metadata')
  })
})
