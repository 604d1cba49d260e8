import OpenAI from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { backgroundTree, held } from '../support/background-responses.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform } from '../support/start-platform.ts'

const folder = new TestFolder()
let upstream: FakeUpstream
let platform: TestPlatform
let acme: OpenAI

async function start(): Promise<void> {
  platform = await startPlatform(backgroundTree(upstream.url, { store: { path: `${folder.path}/store` } }))
  acme = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  // The database is opened with its first use, which takes seconds.
  await acme.batches.list()
}

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  await start()
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await upstream.close()
  folder.remove()
})

it('a response in the background goes on after a restart', async () => {
  upstream.behaviour = held().behaviour
  const { id } = await acme.responses.create({ model: MODEL, input: 'Hi.', background: true })
  await eventually('the engine is asked', () => upstream.seen.length === 1)
  await platform.close()
  upstream.behaviour = answers()
  await start()
  const ended = await eventually(`${id} has ended`, async () => {
    const response = await acme.responses.retrieve(id)
    return ['completed', 'failed', 'incomplete', 'cancelled'].includes(String(response.status)) && response
  })
  expect(ended).toMatchObject({ id, status: 'completed' })
}, 120_000)
