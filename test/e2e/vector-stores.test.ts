import OpenAI, { NotFoundError, toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
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

/** Corpora through OpenAI's own SDK, on the embedded store and the embedded embedder, and chat that uses them. */

const HANDBOOK = `# Refunds
Money goes back to the original payment method within ten business days after we receive the returned item.

# Opening hours
Our stores are open from nine in the morning until eight at night, except on public holidays.

# Pets
Small pets may travel in the cabin inside an approved carrier that fits beneath the seat in front of you.`

let platform: TestPlatform
let acme: OpenAI
let globex: OpenAI
let storeId: string
let added: OpenAI.VectorStores.VectorStoreFile

beforeAll(async () => {
  platform = await startPlatform(testTree({ retrieval: { budgetMs: 5_000 } }))
  acme = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  globex = new OpenAI({ baseURL: platform.baseURL, apiKey: GLOBEX_KEY, maxRetries: 0 })
  const store = await acme.vectorStores.create({ name: 'handbook', metadata: { team: 'support' } })
  storeId = store.id
  const file = await toFile(Buffer.from(HANDBOOK), 'handbook.md')
  added = await acme.vectorStores.files.uploadAndPoll(storeId, file, { pollIntervalMs: 100 })
}, 60_000)
afterAll(() => platform.close())

describe('vector stores', () => {
  it('are listed, read, changed and searched', async () => {
    expect(added).toMatchObject({ status: 'completed', vector_store_id: storeId, last_error: null })
    const listed = await acme.vectorStores.list()
    expect(listed.data.map((store) => store.name)).toEqual(['handbook'])
    const store = await acme.vectorStores.retrieve(storeId)
    expect(store).toMatchObject({ status: 'completed', metadata: { team: 'support' } })
    expect(store.file_counts).toMatchObject({ completed: 1, total: 1, in_progress: 0 })
    expect((await acme.vectorStores.update(storeId, { metadata: { team: 'all' } })).metadata).toEqual({ team: 'all' })
    const found = await acme.vectorStores.search(storeId, { query: 'How do I get my money back?' })
    expect(found.data[0]!.content[0]!.text).toContain('ten business days')
    expect(found.data[0]).toMatchObject({ filename: 'handbook.md' })
    // The schema of a row is closed: a strict client refuses a member of ours.
    expect(Object.keys(found.data[0]!).toSorted()).toEqual(['attributes', 'content', 'file_id', 'filename', 'score'])
    expect(found.data[0]!.score).toBeGreaterThan(found.data.at(-1)!.score)
  })

  it('give back what was put in, and take it out', async () => {
    const file = await acme.files.create({
      file: await toFile(Buffer.from('Trains leave at noon.'), 't.txt'),
      purpose: 'assistants',
    })
    expect(await (await acme.files.content(file.id)).text()).toBe('Trains leave at noon.')
    const added = await acme.vectorStores.files.createAndPoll(
      storeId,
      { file_id: file.id, attributes: { kind: 'train' } },
      { pollIntervalMs: 100 },
    )
    expect(added).toMatchObject({ id: file.id, attributes: { kind: 'train' }, status: 'completed' })
    const only = await acme.vectorStores.search(storeId, {
      query: 'when does it leave?',
      filters: { type: 'eq', key: 'kind', value: 'train' },
    })
    expect(only.data.map((hit) => hit.file_id)).toEqual([file.id])
    const content = await acme.vectorStores.files.content(file.id, { vector_store_id: storeId })
    expect(content.data[0]!.text).toBe('Trains leave at noon.')
    await acme.vectorStores.files.delete(file.id, { vector_store_id: storeId })
    await expect(acme.vectorStores.files.retrieve(file.id, { vector_store_id: storeId })).rejects.toThrow(NotFoundError)
    const none = await acme.vectorStores.search(storeId, { query: 'Trains leave at noon' })
    expect(none.data.map((hit) => hit.file_id)).not.toContain(file.id)
  })

  it('of another tenant do not exist', async () => {
    expect((await globex.vectorStores.list()).data).toEqual([])
    for (const name of [storeId, 'handbook']) {
      await expect(globex.vectorStores.retrieve(name)).rejects.toThrow(NotFoundError)
      await expect(globex.vectorStores.search(name, { query: 'refunds' })).rejects.toThrow(NotFoundError)
      await expect(globex.vectorStores.delete(name)).rejects.toThrow(NotFoundError)
    }
  })
})

describe('chat with a corpus', () => {
  const messages = [{ role: 'user' as const, content: 'How do I get my money back?' }]
  const ask = { model: MODEL, messages, max_tokens: 120 }

  it('answers from its passages and says so', async () => {
    const spillway = { retrieval: { corpus: 'handbook', top_k: 2, include_passages: true } }
    const response = await postJson(`${platform.baseURL}/chat/completions`, { ...ask, spillway })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { spillway: { retrieval: Record<string, unknown> } } & OpenAI.ChatCompletion
    expect(response.headers.get('x-spillway-passages')).toBe('2')
    expect(response.headers.get('x-spillway-retrieval')).toMatch(/fresh|cached/)
    expect(body.choices[0]!.message.content).toContain('ten business days')
    expect(body.spillway.retrieval['passages']).toHaveLength(2)
    const again = await postJson(`${platform.baseURL}/chat/completions`, { ...ask, spillway })
    expect(again.headers.get('x-spillway-retrieval')).toBe('cached')
    expect(await platform.metric('spillway_retrievals_total', { outcome: 'cached' })).toBe(1)
  })

  it('streams, with the passages in front', async () => {
    const body = { ...ask, stream: true, spillway: { retrieval: { corpus: storeId, include_passages: true } } }
    const text = await (await postJson(`${platform.baseURL}/chat/completions`, body)).text()
    const [first = ''] = text.split('\n\n')
    expect(JSON.parse(first.slice(6))).toMatchObject({ choices: [], spillway: { retrieval: { passage_count: 3 } } })
  })

  it('is refused one that does not exist, and told where its own are listed', async () => {
    const body = { ...ask, spillway: { retrieval: { corpus: 'none' } } }
    const response = await postJson(`${platform.baseURL}/chat/completions`, body)
    expect(response.status).toBe(404)
    const { error } = (await response.json()) as { error: { message: string; code: string } }
    expect(error).toMatchObject({ code: 'no_such_corpus', message: expect.stringContaining("no corpus 'none'") })
  })

  it('sees nothing of another tenant', async () => {
    const body = { ...ask, spillway: { retrieval: { corpus: storeId, include_passages: true } } }
    const response = await postJson(`${platform.baseURL}/chat/completions`, body, authorization(GLOBEX_KEY))
    expect(response.status).toBe(404)
    expect(await response.text()).not.toContain('business days')
  })

  it('journals how it ended', async () => {
    const ended = await eventually('a retrieval is journalled', () => {
      platform.journal.drain()
      return platform.entries.find((entry) => entry.kind === 'retrieval-ended')
    })
    expect(ended).toMatchObject({ tenantId: 'acme', passageCount: 2 })
  })
})
