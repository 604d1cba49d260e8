import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually, pause } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** A file of a job rests as it was uploaded; each of its lines is screened when it runs. */
let upstream: FakeUpstream
let platform: TestPlatform
let ai: OpenAI
beforeAll(async () => {
  upstream = await FakeUpstream.start()
  platform = await startPlatform(upstreamTree([upstream.url], { screening: { pii: 'redact', secrets: 'block' } }))
  ai = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await upstream?.close()
})

const MAIL = 'jane.doe@example.com'
const SECRET = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'

const line = (id: string, content: string): string =>
  JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: MODEL, messages: [{ role: 'user', content }] },
  })

it('redacts in a line, and makes a blocked one a line of the error file', async () => {
  const text = [line('a', `Write to ${MAIL}.`), line('b', `My key is ${SECRET}.`)].join('\n')
  const file = await ai.files.create({ file: await toFile(Buffer.from(text), 'asked.jsonl'), purpose: 'batch' })
  const { id } = await ai.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
  const batch = await eventually('the job ends', async () => {
    const seen = await ai.batches.retrieve(id)
    if (seen.status === 'completed') return seen
    await pause(20)
    return undefined
  })
  expect(batch.request_counts).toMatchObject({ total: 2, completed: 1, failed: 1 })
  expect(upstream.seen).toHaveLength(1)
  expect(upstream.seen[0]?.text).toContain('<EMAIL>')
  expect(upstream.seen[0]?.text).not.toContain(MAIL)
  const errors = await (await ai.files.content(batch.error_file_id ?? '')).text()
  expect(errors).toContain('content_filter')
  expect(errors).not.toContain(SECRET)
  expect(await (await ai.files.content(file.id)).text()).toContain(MAIL)
}, 60_000)
